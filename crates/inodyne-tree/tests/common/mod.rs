//! What tests of deleting share: private mount namespaces, small file systems, and an observer that remembers.
//!
//! Tests that mount file systems run again as a child in a mount namespace of its own; when that ends, for whatever reason, the
//! kernel unmounts and detaches everything.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use inodyne_tree::{Control, Failure, Observer, RemoveOptions, RemoveReport, remove};

const INNER: &str = "INODYNE_TEST_IN_NAMESPACE";

/// Runs the test `name` again in a mount namespace; true there, false in the caller, whose work is then done.
pub fn in_namespace(name: &str) -> bool {
    if env::var_os(INNER).is_some() {
        return true;
    }
    assert!(rustix::process::geteuid().is_root(), "this test mounts file systems: run it as root");
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(env::current_exe().expect("this program has a path"))
        .args(["--exact", name, "--nocapture"])
        .env(INNER, "1")
        .status()
        .expect("unshare runs");
    assert!(status.success(), "{name} failed in its namespace");
    false
}

pub fn run(program: &str, arguments: &[&OsStr]) {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A small file system, mounted below a temporary directory. Only for use in a namespace.
pub struct Place {
    pub path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    /// Makes `kind` with these mkfs options.
    pub fn new(kind: &str, mkfs: &[&str]) -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        let path = directory.path().join("mnt");
        fs::create_dir(&path).expect("made");
        if kind == "tmpfs" {
            run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "test".as_ref(), path.as_ref()]);
        } else {
            let image = directory.path().join("image");
            fs::File::create(&image).and_then(|file| file.set_len(1 << 30)).expect("an image");
            let quiet: &[&str] = if kind == "ext4" { &["-q", "-F"] } else { &["-q", "-f"] };
            let mut arguments: Vec<&OsStr> = quiet.iter().chain(mkfs).map(OsStr::new).collect();
            arguments.push(image.as_ref());
            run(&format!("mkfs.{kind}"), &arguments);
            run("mount", &["-o".as_ref(), "loop".as_ref(), image.as_ref(), path.as_ref()]);
            fs::remove_file(image).expect("unlinked");
        }
        Self { path, _directory: directory }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

/// Remembers failures as text, "path: reason".
#[derive(Default)]
pub struct Memory(Mutex<Vec<String>>);

impl Observer for Memory {
    fn failed(&self, failure: &Failure<'_>) {
        let reason = failure.reason.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default();
        self.0.lock().expect("unpoisoned").push(format!("{}: {reason}", failure.path.display()));
    }
}

impl Memory {
    /// What failed, below `root`, sorted.
    pub fn below(&self, root: &Path) -> Vec<String> {
        let root = format!("{}/", root.display());
        let mut all: Vec<_> =
            self.0.lock().expect("unpoisoned").iter().map(|text| text.replacen(&root, "", 1)).collect();
        all.sort();
        all
    }
}

/// Removes `path`, and gives the report and what failed.
pub fn removed(path: &Path, options: &RemoveOptions) -> (RemoveReport, Vec<String>) {
    let memory = Memory::default();
    let report = remove(&[path.into()], options, &Control::new(), &memory);
    let failed = memory.below(path);
    assert_eq!(report.failures, failed.len() as u64);
    (report, failed)
}

/// Everything below `root`, sorted, directories with a slash.
pub fn listing(root: &Path) -> Vec<String> {
    fn walk(root: &Path, directory: &Path, all: &mut Vec<String>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_directory = entry.file_type().expect("a type").is_dir();
            let slash = if is_directory { "/" } else { "" };
            all.push(format!("{}{slash}", path.strip_prefix(root).expect("below").display()));
            if is_directory {
                walk(root, &path, all);
            }
        }
    }
    let mut all = Vec::new();
    walk(root, root, &mut all);
    all.sort();
    all
}
