//! What only a virtual machine shows, in short: the oldest and the newest kernel that are supported, and a shared folder with a guest. `make test-kernels`
//! tries all kernels at length.

use std::path::{Path, PathBuf};
use std::process::Command;

/// By its name in kernels.toml.
const NEWEST: &str = "7.3";

/// The program, which is built beside those of this package.
fn inodyne() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_inodyne-vm")).with_file_name("inodyne")
}

fn succeeds(command: &mut Command) {
    let status = command.status().expect("it starts");
    assert!(status.success(), "{command:?}: {status}");
}

#[test]
fn it_runs_on_the_oldest_and_the_newest_kernel() {
    succeeds(Command::new(env!("CARGO_BIN_EXE_inodyne-vm")).args(["matrix", "--short", "--inodyne"]).arg(inodyne()));
}

#[test]
fn a_shared_folder_has_a_guest() {
    // With a kernel that is there already.
    succeeds(Command::new(env!("CARGO_BIN_EXE_inodyne-vm-share")).arg("--inodyne").arg(inodyne()).arg(NEWEST));
}
