//! vsock between a guest and this machine through `vhost-device-vsock`, a program that needs no module of this machine's kernel: what a guest
//! sends to a port of the host arrives at a Unix socket.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Failure, output};
use crate::kernel::lock;
use crate::share::{Server, start};

const NAME: &str = "vhost-device-vsock";
const VERSION: &str = "0.3.0";
/// The guest's number. Any but 0 to 2 would do.
const CID: u32 = 3;

/// The program, built.
pub struct VsockDevice {
    program: PathBuf,
}

impl VsockDevice {
    /// From the cache; built there by cargo first if it is not there.
    ///
    /// # Errors
    /// It cannot be built.
    pub fn fetch(cache: &Path) -> Result<VsockDevice, Failure> {
        let root = cache.join(format!("{NAME}-{VERSION}"));
        let program = root.join("bin").join(NAME);
        let _lock = lock(cache)?;
        if !program.exists() {
            let mut install = Command::new("cargo");
            output(install.args(["install", NAME, "--version", VERSION, "--locked", "--quiet", "--root"]).arg(&root))?;
        }
        Ok(VsockDevice { program })
    }

    /// Begins to serve it. Whatever listens at [`listening`] of the same directory is the host, for the guest.
    ///
    /// # Errors
    /// It cannot be started, or does not listen.
    pub fn serve(&self, scratch: &Path) -> Result<Server, Failure> {
        let socket = device(scratch);
        let about = format!("guest-cid={CID},uds-path={},socket={}", base(scratch).display(), socket.display());
        start(Command::new(&self.program).args(["--vm", &about]).stdout(Stdio::null()), || socket.exists())
    }

    /// What QEMU is told, besides that its memory is shared.
    #[must_use]
    pub fn qemu_arguments(&self, scratch: &Path) -> Vec<String> {
        let chardev = format!("socket,id=vsock,path={}", device(scratch).display());
        ["-chardev", &chardev, "-device", "vhost-user-vsock-pci,chardev=vsock"].map(String::from).to_vec()
    }
}

fn base(scratch: &Path) -> PathBuf {
    scratch.join("vsock")
}

fn device(scratch: &Path) -> PathBuf {
    scratch.join("vsock-device")
}

/// The Unix socket at which what a guest sends to this port of the host arrives.
#[must_use]
pub fn listening(scratch: &Path, port: u32) -> PathBuf {
    let mut path = base(scratch).into_os_string();
    path.push(format!("_{port}"));
    path.into()
}
