//! NFS-Ganesha: an NFS server that is a program, so that a directory of this machine can be had over NFS where its kernel has no server.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use crate::failure::{Failure, output};
use crate::packaged::Packaged;
use crate::share::{Server, start};

const PROGRAM: &str = "usr/bin/ganesha.nfsd";
/// It knows them by a path from the root.
const LIBRARIES: &str = "usr/lib/ganesha";

/// The server, unpacked.
pub struct Ganesha {
    package: Packaged,
    /// What it reports as its version.
    pub version: String,
}

impl Ganesha {
    /// From the cache; fetched first if it is not there.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn fetch(cache: &Path) -> Result<Ganesha, Failure> {
        let package = Packaged::fetch(cache, "ganesha", &["nfs-ganesha", "nfs-ganesha-vfs"])?;
        let said = output(package.program(PROGRAM, Some(LIBRARIES))?.arg("-v"))?;
        let version = said.lines().next().unwrap_or_default().trim().to_owned();
        Ok(Ganesha { package, version })
    }

    /// Begins to share a directory as `/shared` over NFS 4 at a loopback port, which it returns. What it writes is in `scratch`.
    ///
    /// # Errors
    /// It cannot be started, or does not listen.
    pub fn serve(&self, directory: &Path, scratch: &Path) -> Result<(Server, u16), Failure> {
        let home = scratch.join("ganesha");
        fs::create_dir(&home).map_err(Failure::writing(&home))?;
        let port = free_port()?;
        let [config, log, pid] = ["config", "log", "pid"].map(|name| home.join(name));
        fs::write(&config, self.config(directory, &home, port)).map_err(Failure::writing(&config))?;
        let mut command = self.package.program(PROGRAM, Some(LIBRARIES))?;
        command.arg("-F").arg("-f").arg(&config).arg("-L").arg(&log).arg("-p").arg(&pid);
        let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        let server = start(command.stdout(Stdio::null()).stderr(Stdio::null()), listens);
        let said = || fs::read_to_string(&log).unwrap_or_default();
        server.map(|server| (server, port)).map_err(|failure| Failure::new(format_args!("{failure}\n{}", said())))
    }

    fn config(&self, directory: &Path, home: &Path, port: u16) -> String {
        format!(
            "NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {port}; Bind_addr = 127.0.0.1; Enable_NLM = false; Enable_RQUOTA = false;\n\
             \x20   allow_set_io_flusher_fail = true; Plugins_Dir = \"{plugins}\"; }}\n\
             NFSv4 {{ Graceless = true; UseGetpwnam = true; DomainName = \"localdomain\"; Only_Numeric_Owners = true;\n\
             \x20    RecoveryBackend = fs; RecoveryRoot = \"{home}\"; }}\n\
             EXPORT {{ Export_Id = 1; Path = \"{directory}\"; Pseudo = /shared; Access_Type = RW; Squash = No_Root_Squash;\n\
             \x20   SecType = sys; FSAL {{ Name = VFS; }} CLIENT {{ Clients = 127.0.0.1; Access_Type = RW; Squash = No_Root_Squash; }} }}\n",
            plugins = self.package.libraries().join("ganesha").display(),
            home = home.display(),
            directory = directory.display(),
        )
    }
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Failure::new)?;
    Ok(listener.local_addr().map_err(Failure::new)?.port())
}
