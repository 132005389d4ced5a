//! The virtiofs daemon.

use std::path::Path;
use std::process::Stdio;

use crate::failure::{Failure, output};
use crate::packaged::Packaged;
use crate::share::{Server, start};

const PROGRAM: &str = "usr/libexec/virtiofsd";

/// The daemon, unpacked.
pub struct Virtiofsd {
    package: Packaged,
    /// What it reports as its version.
    pub version: String,
}

impl Virtiofsd {
    /// From the cache; fetched first if it is not there.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn fetch(cache: &Path) -> Result<Virtiofsd, Failure> {
        let package = Packaged::fetch(cache, "virtiofsd", &["virtiofsd"])?;
        let version = output(package.program(PROGRAM, None)?.arg("--version"))?.trim().to_owned();
        Ok(Virtiofsd { package, version })
    }

    /// Begins to share a directory on a socket, without its sandbox.
    ///
    /// # Errors
    /// It cannot be started, or does not listen.
    pub fn serve(&self, directory: &Path, socket: &Path, cache: &str) -> Result<Server, Failure> {
        let mut command = self.package.program(PROGRAM, None)?;
        command.arg("--socket-path").arg(socket).arg("--shared-dir").arg(directory);
        command.args(["--cache", cache, "--sandbox", "none", "--seccomp", "none", "--log-level", "error"]);
        start(command.stdout(Stdio::null()), || socket.exists())
    }
}
