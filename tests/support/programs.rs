//! Files that a test writes and then starts.
//!
//! Another process writes them. The kernel refuses to execute a file that somebody holds open for writing (ETXTBSY), and while
//! this process held it open, a test running beside it might fork: the child keeps the descriptor until it has executed its own program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A copy of the program under test that everybody may run, wherever the target directory lies.
pub fn copy_for_everybody(into: &Path) -> PathBuf {
    let program = into.join("inodyne");
    copied(Path::new(env!("CARGO_BIN_EXE_inodyne")), &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    program
}

/// Copies a program.
pub fn copied(program: &Path, to: &Path) {
    let status = Command::new("cp").arg(program).arg(to).stdin(Stdio::null()).status().expect("cp runs");
    assert!(status.success(), "{} is not copied to {}", program.display(), to.display());
}

/// A script that everybody may run.
pub fn script(path: &Path, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", r#"printf %s "$1" >"$0" && chmod 755 "$0""#]).arg(path).arg(text).stdin(Stdio::null());
    assert!(command.status().expect("sh runs").success(), "{} is not written", path.display());
}
