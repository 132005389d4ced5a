//! The daemon of virtiofs, from a package that is unpacked into the cache: the machine's own release may have none, or only the older one
//! of QEMU. It runs with the libraries of its own release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::apt::{self, Suite};
use crate::failure::{Failure, output, wanted};
use crate::kernel::lock;
use crate::share::{Server, start};

const SUITE: &str = "trixie";
const ARCH: &str = "amd64";

/// The daemon, unpacked.
pub struct Virtiofsd {
    root: PathBuf,
    /// What it says of its version.
    pub version: String,
}

impl Virtiofsd {
    /// From the cache; fetched first where it is not there.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn fetch(cache: &Path) -> Result<Virtiofsd, Failure> {
        let root = cache.join("virtiofsd");
        let _lock = lock(cache)?;
        if !root.exists() {
            let debs = Suite::open(cache, SUITE, ARCH, false)?.download_closure(&["virtiofsd".into()])?;
            let fresh = tempfile::tempdir_in(cache).map_err(Failure::writing(cache))?;
            for deb in debs {
                apt::unpack(&deb, fresh.path())?;
            }
            fs::rename(fresh.keep(), &root).map_err(Failure::writing(&root))?;
        }
        let mut daemon = Virtiofsd { root, version: String::new() };
        daemon.version = output(daemon.command()?.arg("--version"))?.trim().to_owned();
        Ok(daemon)
    }

    fn command(&self) -> Result<Command, Failure> {
        let libraries = self.root.join("usr/lib/x86_64-linux-gnu");
        let mut command = Command::new(wanted(libraries.join("ld-linux-x86-64.so.2"))?);
        command.arg("--library-path").arg(&libraries).arg(wanted(self.root.join("usr/libexec/virtiofsd"))?);
        Ok(command)
    }

    /// Begins to share a directory on a socket, without its sandbox.
    ///
    /// # Errors
    /// It cannot be started, or does not listen.
    pub fn serve(&self, directory: &Path, socket: &Path, cache: &str) -> Result<Server, Failure> {
        let mut command = self.command()?;
        command.arg("--socket-path").arg(socket).arg("--shared-dir").arg(directory);
        command.args(["--cache", cache, "--sandbox", "none", "--seccomp", "none", "--log-level", "error"]);
        start(command.stdout(Stdio::null()), socket)
    }
}
