//! What a guest boots from: a root file system, the same for all kernels of an architecture, and an initial RAM disk with
//! the kernel's modules and whatever a test adds.
//!
//! The root file system consists of the packages in `packages.txt`, from this machine's own release, so that programs
//! built here run there. It is unpacked, never installed: no script of a package runs. Guests write to a snapshot of it
//! that is gone with them. There is a second one, with systemd and containers ([`System`]).

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Seek, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::apt::{self, Suite};
use crate::cpio::Archive;
use crate::failure::{Failure, output};
use crate::kernel::{Kernel, lock};
use crate::modules;

const PACKAGES: &str = include_str!("../packages.txt");
const SYSTEMD_PACKAGES: &str = include_str!("../packages-systemd.txt");
const INIT: &str = include_str!("../init.sh");
/// To be changed when what this file makes of the packages changes.
const LAYOUT: u32 = 1;
/// Room for the places that tests make. The file is sparse.
const ROOT_BYTES: u64 = 12 << 30;

/// What runs in a guest besides the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum System {
    /// Nothing: the agent is the first process.
    #[default]
    Bare,
    /// systemd is the first process and the agent a service of it; there are D-Bus and Podman.
    Systemd,
}

impl System {
    /// What the packages of this system are called in messages and file names; nothing for the bare one.
    fn suffix(self) -> &'static str {
        match self {
            System::Bare => "",
            System::Systemd => "-systemd",
        }
    }

    /// The names of the packages that are asked for.
    fn packages(self) -> Vec<String> {
        let lists = [PACKAGES, if self == System::Systemd { SYSTEMD_PACKAGES } else { "" }];
        let names = lists.iter().flat_map(|list| list.lines());
        let names = names.map(|line| line.split('#').next().unwrap_or_default().trim());
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn files(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let own: &[_] = if self == System::Systemd { &SYSTEMD_FILES } else { &[] };
        FILES.iter().chain(own).copied()
    }
}

/// Files that come with a package only by its scripts.
const FILES: [(&str, &str); 6] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost inodyne-vm\n"),
    ("etc/hostname", "inodyne-vm\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("etc/fuse.conf", "user_allow_other\n"),
];
/// The same for systemd and what it runs. What the image says wins over what it says for all guests.
const SYSTEMD_FILES: [(&str, &str); 6] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\nmessagebus:x:100:100::/nonexistent:/usr/sbin/nologin\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\nuser:x:1000:\nmessagebus:x:100:\nnogroup:x:65534:\n"),
    // Which must be there, and may be empty: systemd writes it.
    ("etc/machine-id", ""),
    ("etc/fstab", ""),
    ("etc/systemd/system/inodyne-vm-agent.service", include_str!("../systemd/inodyne-vm-agent.service")),
    ("etc/systemd/system/inodyne-vm.target", include_str!("../systemd/inodyne-vm.target")),
];
const DIRECTORIES: [&str; 9] = ["proc", "sys", "dev", "tmp", "run", "root", "mnt", "var/tmp", "usr/lib/modules"];
/// Packages unpack into these, wherever their directories have moved to.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
const LINKS: [(&str, &str); 2] = [("usr/bin/awk", "mawk"), ("usr/bin/sh", "dash")];
const NOT_WANTED: [&str; 5] =
    ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/i18n"];

/// What a test adds to a guest: files of the host at paths of the guest.
#[derive(Debug, Clone, Default)]
pub struct Payload {
    files: Vec<(PathBuf, String)>,
    links: Vec<(String, String)>,
    packed: Vec<Arc<Vec<u8>>>,
}

impl Payload {
    /// Adds a file or a directory of the host, to be found at `to`. Programs are not stripped: give small ones.
    pub fn add(&mut self, from: impl Into<PathBuf>, to: impl Into<String>) -> &mut Payload {
        self.files.push((from.into(), to.into()));
        self
    }

    /// Adds a symbolic link at `path`.
    pub fn link(&mut self, path: impl Into<String>, target: impl Into<String>) -> &mut Payload {
        self.links.push((path.into(), target.into()));
        self
    }

    /// The same, with all files read now: those of the host may go.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn packed(&self) -> Result<Payload, Failure> {
        Ok(Payload { packed: vec![Arc::new(self.archive()?)], ..Payload::default() })
    }

    /// One archive after the other, which is what a RAM disk may be.
    fn archive(&self) -> Result<Vec<u8>, Failure> {
        let before = self.packed.iter().flat_map(|archive| archive.iter().copied()).collect::<Vec<u8>>();
        let mut archive = Archive::default();
        for (from, to) in &self.files {
            archive.copy(from, &format!("payload/{}", to.trim_matches('/'))).map_err(Failure::reading(from))?;
        }
        for (path, target) in &self.links {
            archive.symlink(&format!("payload/{}", path.trim_matches('/')), target);
        }
        Ok([before, archive.finish()].concat())
    }
}

/// The root file system for an architecture, from the cache or made now.
///
/// # Errors
/// Packages cannot be fetched, or mkfs.ext4 is missing.
pub fn root(cache: &Path, arch: &str, system: System) -> Result<PathBuf, Failure> {
    let release = apt::own_release()?;
    let mut hasher = DefaultHasher::new();
    (PACKAGES, LAYOUT, ROOT_BYTES, FILES).hash(&mut hasher);
    if system == System::Systemd {
        (SYSTEMD_PACKAGES, SYSTEMD_FILES).hash(&mut hasher);
    }
    let suffix = system.suffix();
    let path = cache.join(format!("root{suffix}-{release}-{arch}-{:016x}.ext4", hasher.finish()));
    let _lock = lock(cache)?;
    if path.exists() {
        return Ok(path);
    }
    let debs = Suite::open(cache, &release, arch, false)?.download_closure(&system.packages())?;
    let tree = tempfile::tempdir_in(cache).map_err(Failure::writing(cache))?;
    fill(tree.path(), &debs, system)?;
    let image = tempfile::NamedTempFile::new_in(cache).map_err(Failure::writing(cache))?;
    image.as_file().set_len(ROOT_BYTES).map_err(Failure::writing(image.path()))?;
    let mut mkfs = Command::new("mkfs.ext4");
    mkfs.args(["-q", "-F", "-L", "inodyne-vm", "-E", "root_owner=0:0", "-d"]).arg(tree.path()).arg(image.path());
    output(mkfs.env("PATH", crate::path_with_sbin()))?;
    image.persist(&path).map_err(|error| Failure::writing(&path)(error.error))?;
    Ok(path)
}

fn fill(tree: &Path, debs: &[PathBuf], system: System) -> Result<(), Failure> {
    let at = |name: &str| tree.join(name);
    for name in MERGED {
        let target = format!("usr/{name}");
        fs::create_dir_all(at(&target)).map_err(Failure::writing(at(&target)))?;
        symlink(&target, at(name)).map_err(Failure::writing(at(name)))?;
    }
    for deb in debs {
        apt::unpack(deb, tree)?;
    }
    for name in DIRECTORIES {
        fs::create_dir_all(at(name)).map_err(Failure::writing(at(name)))?;
    }
    for (name, target) in LINKS {
        let _ = fs::remove_file(at(name));
        symlink(target, at(name)).map_err(Failure::writing(at(name)))?;
    }
    for (name, text) in system.files() {
        let path = at(name);
        fs::create_dir_all(path.parent().expect("below the tree")).map_err(Failure::writing(&path))?;
        fs::write(&path, text).map_err(Failure::writing(&path))?;
    }
    for name in NOT_WANTED {
        let _ = fs::remove_dir_all(at(name));
    }
    output(Command::new("chmod").arg("1777").arg(at("var/tmp")).arg(at("tmp")))?;
    Ok(())
}

/// The initial RAM disk: what belongs to the kernel comes from the cache, the payload is added each time. Without a name.
///
/// # Errors
/// A file cannot be read, or the disk is full.
pub fn initial_ram_disk(cache: &Path, kernel: &Kernel, payload: &Payload) -> Result<File, Failure> {
    let mut disk = tempfile::tempfile().map_err(Failure::writing("a temporary file"))?;
    for part in [of_kernel(cache, kernel)?, payload.archive()?] {
        disk.write_all(&part).map_err(Failure::writing("a temporary file"))?;
    }
    disk.rewind().map_err(Failure::writing("a temporary file"))?;
    Ok(disk)
}

fn of_kernel(cache: &Path, kernel: &Kernel) -> Result<Vec<u8>, Failure> {
    let busybox = busybox(cache, &kernel.entry.arch)?;
    let mut hasher = DefaultHasher::new();
    (INIT, modules::WANTED, LAYOUT, &kernel.package).hash(&mut hasher);
    let path = kernel.directory.join(format!("initial-{:016x}.cpio", hasher.finish()));
    let _lock = lock(cache)?;
    if let Ok(bytes) = fs::read(&path) {
        return Ok(bytes);
    }
    let mut archive = Archive::default();
    archive.file("init", 0o755, INIT.as_bytes());
    let program = fs::read(&busybox).map_err(Failure::reading(&busybox))?;
    archive.file("bin/busybox", 0o755, &program);
    modules::add(&mut archive, kernel)?;
    let bytes = archive.finish();
    let fresh = path.with_extension("new");
    fs::write(&fresh, &bytes).and_then(|()| fs::rename(&fresh, &path)).map_err(Failure::writing(&path))?;
    Ok(bytes)
}

/// A static busybox for the architecture.
fn busybox(cache: &Path, arch: &str) -> Result<PathBuf, Failure> {
    let directory = cache.join(format!("busybox-{arch}"));
    let program = |directory: &Path| {
        ["usr/bin/busybox", "bin/busybox"].iter().map(|name| directory.join(name)).find(|path| path.is_file())
    };
    let _lock = lock(cache)?;
    if let Some(program) = program(&directory) {
        return Ok(program);
    }
    fs::create_dir_all(&directory).map_err(Failure::writing(&directory))?;
    let suite = Suite::open(cache, &apt::own_release()?, arch, false)?;
    for deb in suite.download(&["busybox-static".into()], &directory)? {
        apt::unpack(&deb, &directory)?;
    }
    program(&directory).ok_or_else(|| Failure::new("the package busybox-static holds no busybox"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_payload_is_the_same_when_its_files_are_gone() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("one");
        fs::write(&file, "1").unwrap();
        let mut payload = Payload::default();
        payload.add(&file, "/opt/one").link("/opt/two", "one");
        let before = payload.archive().unwrap();
        let mut packed = payload.packed().unwrap();
        drop(scratch);
        assert!(packed.archive().unwrap().starts_with(&before));
        assert!(payload.archive().is_err());
        packed.link("/opt/three", "one");
        assert!(packed.archive().unwrap().starts_with(&before));
    }
}
