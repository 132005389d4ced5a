//! What the tests share: a lab with a scratch of its own, and a look at everything that could be left behind.
//!
//! Each test thread enters a mount namespace of its own; what the parent process (cargo) sees is the outside.
//! Other tests, and other programs, make loop devices meanwhile, so ours are recognised by the scratch their image is in.

#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use inodyne_lab::{Lab, MountedPlace, Owner, PlaceSpec};
use tempfile::TempDir;

/// Whom the places are made for.
pub const SOMEBODY: Owner = Owner { uid: 1234, gid: 2345 };

/// A lab and its scratch directory. Without root making places fails, as it should: a skipped test proves nothing.
pub fn lab() -> (Lab, TempDir) {
    let scratch = scratch();
    (Lab::new().with_scratch(scratch.path()), scratch)
}

pub fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("inodyne-lab-test").tempdir_in("/var/tmp").expect("a scratch directory")
}

pub fn spec(text: &str) -> PlaceSpec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn make(lab: &Lab, text: &str) -> MountedPlace {
    lab.make(&spec(text), SOMEBODY).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What making this place says when it fails: one line.
pub fn refused(lab: &Lab, text: &str) -> String {
    let parsed = text.parse().and_then(|spec: PlaceSpec| lab.make(&spec, SOMEBODY));
    let error = parsed.expect_err(text).to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

/// One test at a time empties the caches of the whole machine or changes its settings, or must not be disturbed by that.
/// What is locked is the same for the tests of another checkout, and for the end-to-end tests (`tests/support`).
#[must_use]
pub fn alone() -> fs::File {
    let directory = fs::File::open("/sys/kernel").expect("sysfs");
    directory.lock().expect("the lock on the machine");
    directory
}

pub fn mounts_outside() -> String {
    let parent = std::os::unix::process::parent_id();
    fs::read_to_string(format!("/proc/{parent}/mounts")).expect("the mounts outside")
}

/// The example that holds places; cargo builds it before tests run.
pub fn hold() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let path = test.parent().and_then(|deps| deps.parent()).expect("a target directory").join("examples/hold");
    assert!(path.exists(), "{} is missing: `cargo test -p inodyne-lab` builds it", path.display());
    path
}

/// A process of ours that serves a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub pid: i32,
    pub parent: i32,
    pub name: String,
}

/// All of them on this machine, whoever started them.
pub fn servers() -> Vec<Server> {
    let of = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, rest) = stat.split_once('(')?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let parent = rest.split(' ').nth(1)?.parse().ok()?;
        let is_ours = matches!(name, "inodyne-disk" | "inodyne-fuse" | "inodyne-host" | "inodyne-guest");
        is_ours.then(|| Server { pid, parent, name: name.into() })
    };
    fs::read_dir("/proc").expect("processes").flatten().filter_map(of).collect()
}

/// Everything that is left of places over this scratch: mounts outside, attached images, named images.
pub fn remains(scratch: &Path) -> Vec<String> {
    let mut remains = Vec::new();
    remains.extend(mounts_outside().lines().filter(|line| line.contains("/place-")).map(str::to_owned));
    for device in fs::read_dir("/sys/block").expect("block devices").flatten() {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        if Path::new(backing.trim()).starts_with(scratch) {
            remains.push(format!("{} {backing}", device.file_name().display()));
        }
    }
    // Those of a test that runs at the same time are its process's children; a place's own is gone when that is dropped.
    remains.extend(servers().into_iter().filter(|server| server.parent == 1).map(|server| format!("{server:?}")));
    remains.extend(fs::read_dir(scratch).expect("the scratch").flatten().map(|file| file.path().display().to_string()));
    remains
}

/// Waits for the kernel, which writes back, unmounts and detaches in the background, and insists that nothing remains.
pub fn nothing_remains(scratch: &Path) {
    let started = Instant::now();
    loop {
        let remains = remains(scratch);
        if remains.is_empty() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "left behind: {remains:#?}");
        thread::sleep(Duration::from_millis(20));
    }
}
