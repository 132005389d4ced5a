//! Which programs a missing d_type hurts: the finding `dtype-missing` where it costs, and silence where it does not.

mod support;

use inodyne_model::finding::Finding;
use support::{machine, nothing_lost, run, sh, traced};

const UNTYPED: &str = "ext4:size=256M,mkfs=-O ^filetype";
const TYPED: &str = "ext4:size=256M";
const FILES: u64 = 3_000;
const DATA: &str = "tree:dirs=100,files=30,bytes=1";

/// The findings about a shell command on a file system with 3,000 files; `prepare` comes before it, untraced.
fn findings(place: &str, prepare: &str, script: &str) -> Vec<Finding> {
    let options = ["--at", place, "--data", DATA, "--cache", "warm", "--prepare", prepare];
    let recording = run(&mut traced(&options, sh(script))).ended_with(0).recording();
    nothing_lost(&recording.traces[0]);
    // What else is said of these programs is another test's business.
    recording.findings.into_iter().filter(|finding| finding.id == "dtype-missing").collect()
}

/// The program pays for the missing types: about one call a file, none of it on the same tree with types.
fn is_hurt(script: &str) {
    is_hurt_by(FILES, script);
}

fn is_hurt_by(calls: u64, script: &str) {
    let _machine = machine();
    let found = findings(UNTYPED, "true", script);
    let [finding] = &found[..] else { panic!("{script}: {found:#?}") };
    assert_eq!(finding.id, "dtype-missing", "{script}");
    let avoidable = finding.avoidable_calls.expect("it is about calls");
    assert!(avoidable.abs_diff(calls) <= calls / 100, "{script}: {avoidable} avoidable calls");
    let predicted = finding.predicted;
    assert!(predicted.low_ns <= predicted.wall_ns && predicted.wall_ns <= predicted.high_ns, "{script}: {predicted:?}");
    let found = findings(TYPED, "true", script);
    assert!(found.is_empty(), "{script}, with types: {found:#?}");
}

/// The program asks for each entry in any case.
fn is_not_hurt(prepare: &str, script: &str) {
    let _machine = machine();
    let found = findings(UNTYPED, prepare, script);
    assert!(found.is_empty(), "{script}: {found:#?}");
}

#[test]
fn find_is_hurt() {
    is_hurt("exec find . >/dev/null");
}

#[test]
fn ls_r_is_hurt() {
    is_hurt("exec ls -R >/dev/null");
}

#[test]
fn rm_rf_is_hurt() {
    is_hurt("exec rm -rf d*");
}

#[test]
fn os_walk_is_hurt() {
    // Several walks, so that they and not the start of the interpreter take the time.
    let walks = "import os\nfor _ in range(10): sum(len(files) for _, _, files in os.walk(\".\"))";
    is_hurt_by(10 * FILES, &format!("exec python3 -IS -c '{walks}'"));
}

#[test]
fn git_ls_files_is_hurt() {
    is_hurt("git init -q . && exec git ls-files -o >/dev/null");
}

#[test]
fn du_is_not_hurt() {
    is_not_hurt("true", "exec du -s . >/dev/null");
}

#[test]
fn ls_l_is_not_hurt() {
    is_not_hurt("true", "exec ls -lR . >/dev/null");
}

#[test]
fn tar_is_not_hurt() {
    is_not_hurt("true", "exec tar cf - . | cat >/dev/null");
}

#[test]
fn find_newer_is_not_hurt() {
    is_not_hurt("true", "exec find . -newer /etc/passwd >/dev/null");
}

#[test]
fn busybox_find_is_not_hurt() {
    is_not_hurt("true", "exec busybox find . >/dev/null");
}

#[test]
fn git_status_of_tracked_files_is_not_hurt() {
    let prepare = "git init -q . && git add -A && git -c user.name=t -c user.email=t@t commit -qm all";
    is_not_hurt(prepare, "exec git status >/dev/null");
}
