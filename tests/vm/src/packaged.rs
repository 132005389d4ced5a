//! A server from a package of another release, unpacked into the cache: the machine's own release may have none, or only an older one.
//! It runs with the libraries of its own release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt::{self, Suite};
use crate::failure::{Failure, wanted};
use crate::kernel::lock;

const SUITE: &str = "trixie";
const ARCH: &str = "amd64";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// What was unpacked.
pub(crate) struct Packaged {
    root: PathBuf,
}

impl Packaged {
    /// These packages with all that they depend on, in a directory of the cache with this name; fetched first if it is not there.
    ///
    /// # Errors
    /// They cannot be fetched.
    pub fn fetch(cache: &Path, name: &str, packages: &[&str]) -> Result<Packaged, Failure> {
        let root = cache.join(name);
        let _lock = lock(cache)?;
        if !root.exists() {
            let packages: Vec<String> = packages.iter().map(|package| (*package).into()).collect();
            let debs = Suite::open(cache, SUITE, ARCH, false)?.download_closure(&packages)?;
            let fresh = tempfile::tempdir_in(cache).map_err(Failure::writing(cache))?;
            for deb in debs {
                apt::unpack(&deb, fresh.path())?;
            }
            fs::rename(fresh.keep(), &root).map_err(Failure::writing(&root))?;
        }
        Ok(Packaged { root })
    }

    /// The directory of its libraries.
    pub fn libraries(&self) -> PathBuf {
        self.root.join(LIBRARIES)
    }

    /// A program of it, by its path there. It may have libraries of its own in this directory, too.
    ///
    /// # Errors
    /// There is none.
    pub fn program(&self, path: &str, own_libraries: Option<&str>) -> Result<Command, Failure> {
        let libraries = self.libraries();
        let mut command = Command::new(wanted(libraries.join("ld-linux-x86-64.so.2"))?);
        let own = own_libraries.map(|own| format!(":{}", self.root.join(own).display())).unwrap_or_default();
        command.arg("--library-path").arg(format!("{}{own}", libraries.display())).arg(wanted(self.root.join(path))?);
        Ok(command)
    }
}
