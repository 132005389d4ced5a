//! The first screen of real commands: it fits a small terminal, and its sentence agrees with the ledger. `docs/tour.md` shows the
//! screens of these and of others.

mod support;

use std::path::Path;

use inodyne_model::Nanos;
use inodyne_model::recording::Recording;
use support::{inodyne, load, machine, prepare, run, scratch};
use unicode_width::UnicodeWidthStr;

/// What the screen's sentence has to begin with or to be: a finding's, where that accounts for as much as the largest row of the
/// ledger, otherwise that row's share. Computed from the recording, and not by what prints the report.
fn expected(recording: &Recording) -> String {
    let ledger = &recording.traces[0].ledger;
    let largest = ledger.rows.iter().map(|row| row.ns).max().unwrap_or(Nanos::ZERO).share_of(ledger.wall_ns);
    match recording.findings.first().filter(|finding| finding.is_an_answer() && finding.share_of_wall >= largest) {
        Some(finding) => format!("{}.", finding.title),
        None => format!("{:.0}% of the time ", largest * 100.0),
    }
}

/// Runs a command in a directory, and looks at what is said about it.
fn told_of(directory: &Path, script: &str) {
    let file = directory.join("kept.inodyne");
    let mut command = inodyne();
    command.args(["run", "-o"]).arg(&file).args(["--", "sh", "-c", script]).current_dir(directory);
    let told = run(&mut command).ended_with(0).stderr;
    let shown = run(inodyne().arg("show").arg(&file)).ended_with(0).text();
    assert!(told.ends_with(&shown), "run told\n{told}\nshow told\n{shown}");
    assert!(shown.lines().count() <= 24, "{script}:\n{shown}");
    assert!(shown.lines().all(|line| line.width() <= 80), "{script}:\n{shown}");
    let mut recording = load(&file).expect("it was kept");
    inodyne_analyse::explain(&mut recording);
    let words: Vec<&str> = shown.lines().skip(1).flat_map(str::split_whitespace).collect();
    let expected = expected(&recording);
    let is_cut = |words: &str| {
        words.split(['…', '~']).next().is_some_and(|begin| expected.starts_with(begin) && begin.len() > 20)
    };
    let words = words.join(" ");
    assert!(words.starts_with(expected.trim_end()) || is_cut(&words), "{expected:?} is not what begins\n{shown}");
    let whole = run(inodyne().args(["show", "-v"]).arg(&file)).ended_with(0).text();
    assert!(whole.contains("System calls, summed over all threads"), "{whole}");
    assert!(!shown.contains("docs/") && !whole.contains("docs/"), "no paths of the source tree:\n{whole}");
}

#[test]
fn the_first_screen_of_real_commands_fits_and_agrees_with_the_ledger() {
    let _machine = machine();
    let scratch = scratch();
    let directory = scratch.path();
    prepare(directory, "mkdir tree; for i in $(seq 300); do mkdir tree/$i; echo some words > tree/$i/file; done");
    for script in [
        "find tree",
        "cp -r tree copy",
        "ls -lR tree",
        "grep -r word tree",
        "tar cf tree.tar tree",
        "rm -rf copy",
        "dd if=/dev/zero of=file bs=64k count=100 oflag=dsync",
        "dd if=/dev/zero of=file bs=1M count=16 conv=fsync",
        "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done",
        "python3 -c 'import json, http.client'",
        "sleep 0.2",
    ] {
        told_of(directory, script);
    }
}
