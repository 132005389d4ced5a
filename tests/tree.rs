//! `inodyne tree` as a program: its exit codes, its one-line errors, and what it prints.

use std::{
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

/// Runs a shell script in `place`; `$tree` is `inodyne tree`.
fn shell(place: &Path, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(place).env("tree", format!("{} tree", env!("CARGO_BIN_EXE_inodyne")));
    command.env("LC_ALL", "C").output().expect("sh runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn place() -> TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a temporary directory")
}

/// Exit code 2 and one line.
#[test]
fn what_the_user_got_wrong_is_said_in_one_line() {
    let place = place();
    shell(place.path(), "mkdir full; touch full/x file; mkdir plain");
    for (arguments, says) in [
        ("make t --spec depth=0,width=3", "give either depth and width, or dirs (and fan), each above 0"),
        ("make t --spec depth=9999999999,width=1", "depth=9999999999 is too deep: at most 10000000"),
        ("make t --spec depth=4000000000,width=1", "depth=4000000000 is too deep: at most 10000000"),
        ("make t --spec depth=99,width=99", "too many directories"),
        ("make t --spec dirs=1,bytes=x", "'x' is not an amount"),
        ("make t --dirs 1 --bytes 9..3", "'9..3' runs backwards"),
        ("make t --spec colour=red", "no key 'colour'"),
        ("make t", "say which tree"),
        ("make none/t --dirs 1", "cannot make directory none/t: No such file or directory"),
        ("make file --dirs 1", "cannot open file: Not a directory"),
        ("make file/t --dirs 1", "Not a directory"),
        ("make full --dirs 1", "full is not empty"),
        ("check none --dirs 1", "cannot open none: No such file or directory"),
        ("check none", "cannot open none: No such file or directory"),
        ("check file", "cannot open file: Not a directory"),
        ("check plain", "plain does not say which tree it holds"),
    ] {
        let output = shell(place.path(), &format!("ulimit -v 8000000; $tree {arguments}"));
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{arguments}: {said}");
        assert!(said.contains(says), "{arguments}: {said}");
        assert_eq!(text(&output.stdout), "");
    }
    for threads in ["0", "100000000", "x", "-1"] {
        let output = shell(place.path(), &format!("$tree make t --dirs 1 --threads={threads}"));
        assert_eq!(output.status.code(), Some(2), "{threads}");
    }
    assert!(!place.path().join("t").exists());
}

#[test]
fn a_full_disk_ends_it_with_the_reason() {
    assert!(rustix::process::geteuid().is_root(), "this test mounts file systems: run it as root");
    let place = place();
    let script = "mkdir m; mount -t tmpfs -o size=1M x m; $tree make m/t --dirs 10 --files 10 --bytes 50000; echo $?
        $tree check m/t >problems; echo $?; tail -n1 problems";
    let quoted = script.replace('\'', "'\\''");
    let output = shell(place.path(), &format!("unshare --mount --propagation private sh -c '{quoted}'"));
    let (said, wrong) = (text(&output.stdout), text(&output.stderr));
    assert!(said.starts_with("3\n1\n") && said.ends_with(" differences\n"), "{said}{wrong}");
    let first = wrong.lines().next().unwrap_or_default();
    assert!(first.starts_with("inodyne: cannot ") && first.contains("No space left on device"), "{wrong}");
}

#[test]
fn what_is_printed_is_one_line_each_and_nobody_needs_to_read_it() {
    let place = place();
    let output = shell(
        place.path(),
        "$tree make t --dirs 3 --files 3 | true; ln -s t link; $tree check link --dirs 3 --files 3 >/dev/null; echo $?
         touch \"t/$(printf 'two\\nlines \\033[31m\\377')\"; $tree check t; echo $?; $tree check t --json | grep -c two
         $tree check t >/dev/full; echo $?; $tree make u --dirs 1 >/dev/full; echo $?; $tree check t | true",
    );
    assert_eq!(
        text(&output.stdout),
        "0\ntwo\\nlines \\u{1b}[31m\\xff: not in the specification\nt: 9 files in 4 directories, 0 bytes: 1 difference\n1\n1\n2\n2\n"
    );
    let full = "inodyne: write error: No space left on device (os error 28)\n";
    assert_eq!(text(&output.stderr), full.repeat(2));
}

#[test]
fn a_check_gets_by_with_few_descriptors_and_little_memory() {
    let place = place();
    let output = shell(
        place.path(),
        "$tree make t --depth 7 --width 3 >/dev/null; ulimit -n 16; $tree check t | sed 's/ (.*//'
         mkdir v; ulimit -v 1000000; timeout 2 $tree check v --depth 2 --width 1000000000; echo $?",
    );
    assert_eq!(
        text(&output.stdout),
        "t: 2187 files in 1093 directories, 0 bytes: all as specified\n124\n",
        "{}",
        text(&output.stderr)
    );
}
