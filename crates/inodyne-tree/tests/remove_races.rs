//! Whatever others do to the tree in the meantime, nothing outside it is touched, and the delete ends.

mod common;

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use common::{listing, removed};
use inodyne_tree::{RemoveOptions, Strategy, make};
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

const SWAPPER: &str = "INODYNE_TEST_SWAP_IN";

/// Not a test of its own: the process that swaps directories for links while others delete.
#[test]
fn swapper() {
    let Some(place) = env::var_os(SWAPPER).map(PathBuf::from) else { return };
    let exchange = |a: &Path, b: &Path| renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).is_ok();
    // Until it is killed, or its parent is gone.
    let parent = rustix::process::getppid();
    let mut round = 0u64;
    while rustix::process::getppid() == parent {
        round += 1;
        let directory = place.join(format!("tree/d{}", round % 4));
        // A directory for a link to the canaries and back, or out of the tree and back.
        exchange(&directory, &place.join("link"));
        exchange(&directory, &place.join("link"));
        exchange(&directory.join("d0"), &place.join("canaries/moved"));
        let _ = fs::rename(directory.join("d1"), place.join("aside"));
        let _ = fs::rename(place.join("aside"), directory.join("d2"));
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_racing_swapper_leads_no_delete_outside() {
    let place = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let path = |name: &str| place.path().join(name);
    let canaries: Vec<_> = (0..40).map(|number| format!("canaries/{}/f{number}", number % 5)).collect();
    for canary in &canaries {
        fs::create_dir_all(path(canary).parent().expect("a parent")).expect("made");
        fs::write(path(canary), canary).expect("written");
    }
    // Few descriptors, so that directories are closed and found again while they are swapped.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).expect("lowered");
    let _swapper = Killed(
        Command::new(env::current_exe().expect("this program has a path"))
            .args(["--exact", "swapper"])
            .env(SWAPPER, place.path())
            // It is a test program too, and what it prints is not one of our results.
            .stdout(Stdio::null())
            .spawn()
            .expect("started"),
    );
    let spec = "dirs=60,fan=4,files=6".parse().expect("a specification");
    for round in 0..1000 {
        // A swap may leave the link in the tree's place or beside it; both are fresh each time.
        let made = path("new");
        make(&spec, &made).expect("made");
        let _ = fs::remove_file(path("link"));
        let _ = symlink(path("canaries"), path("link"));
        let _ = fs::create_dir(path("canaries/moved"));
        fs::rename(&made, path("tree")).expect("the swapper does not touch the root");

        let strategy = Strategy::ALL.get(round % 5).copied();
        let threads = [None, Some(1), Some(2)][round % 3];
        removed(&path("tree"), &RemoveOptions { strategy, threads, ..Default::default() });

        for canary in &canaries {
            assert_eq!(fs::read_to_string(path(canary)).ok().as_deref(), Some(canary.as_str()), "round {round}");
        }
        // What the swapper brought back too late is removed without it in the way.
        for _ in 0..100 {
            let gone = fs::remove_dir_all(path("tree")).is_ok() || !path("tree").exists();
            if gone && fs::symlink_metadata(path("tree")).is_err() {
                break;
            }
        }
        let _ = fs::remove_dir_all(path("aside"));
        if fs::symlink_metadata(path("link")).is_ok_and(|meta| meta.is_dir()) {
            let _ = fs::remove_dir_all(path("link"));
        }
        if path("canaries/moved").exists() {
            let _ = fs::remove_dir_all(path("canaries/moved"));
        }
    }
}

#[test]
fn files_that_keep_appearing_do_not_hold_it_up() {
    let place = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let root = place.path().join("tree");
    let stop = AtomicBool::new(false);
    for strategy in Strategy::ALL {
        make(&"dirs=20,files=20".parse().expect("a specification"), &root).expect("made");
        stop.store(false, Ordering::Relaxed);
        let failed = thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0u64.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let _ = fs::write(root.join(format!("d7/new{}", number % 1000)), "");
                }
            });
            let (_, failed) = removed(&root, &RemoveOptions { strategy: Some(strategy), ..Default::default() });
            stop.store(true, Ordering::Relaxed);
            failed
        });
        // Either the last look found it empty, or it is the one thing named.
        assert!(failed.is_empty() || failed == ["d7: Directory not empty"], "{failed:?}");
        assert!(listing(&root).iter().all(|path| path.starts_with("d7/")));
        let _ = fs::remove_dir_all(&root);
    }
}

#[test]
fn two_deletes_of_one_tree_do_not_disturb_each_other() {
    let place = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let root = place.path().join("tree");
    for _ in 0..20 {
        make(&"dirs=50,fan=5,files=20".parse().expect("a specification"), &root).expect("made");
        thread::scope(|scope| {
            let both = [Strategy::Steal, Strategy::Single].map(|strategy| {
                let (root, options) = (&root, RemoveOptions { strategy: Some(strategy), ..Default::default() });
                scope.spawn(move || removed(root, &options).1)
            });
            for delete in both {
                assert_eq!(delete.join().expect("no panic"), [""; 0]);
            }
        });
        assert!(!root.exists());
    }
}
