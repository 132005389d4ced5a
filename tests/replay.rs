//! A recording shows the same report anywhere: byte for byte, as a user without any privilege.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use support::programs::copy_for_everybody;
use support::{as_nobody, fixture, inodyne, machine, run, scratch};

/// Shows a recording as nobody. In another directory, with another environment.
fn shown(program: &Path, recording: &Path, options: &[&str]) -> Vec<u8> {
    let mut command = Command::new(program);
    command.env_clear().current_dir("/").stdin(Stdio::null()).arg("show").args(options).arg(recording);
    let outcome = run(as_nobody(&mut command)).ended_with(0);
    assert_eq!(outcome.stderr, "");
    outcome.stdout
}

fn replays(options: &[&str], argv: &[&str]) {
    let _machine = machine();
    let scratch = scratch();
    let program = copy_for_everybody(scratch.path());
    let recording = scratch.path().join("kept.inodyne");
    for format in ["text", "json", "markdown", "csv"] {
        let mut command = inodyne();
        command.args(["run", "--format", format, "-o"]).arg(&recording).args(options).arg("--").args(argv);
        let outcome = run(&mut command).ended_with(0);
        fs::set_permissions(&recording, fs::Permissions::from_mode(0o644)).expect("it is ours");
        let again = shown(&program, &recording, &["--format", format]);
        if format != "text" {
            assert!(outcome.stdout == again, "show --format {format} differs from what run printed");
        } else {
            let told = String::from_utf8(again.clone()).expect("a report is text");
            assert!(outcome.stderr.ends_with(&told), "run told\n{}\nshow told\n{told}", outcome.stderr);
        }
        assert!(again == shown(&program, &recording, &["--format", format]), "shown twice, it differs");
    }
}

#[test]
fn of_a_run_with_a_finding() {
    let slow = "slow=ext4:size=64M,mkfs=-O ^filetype";
    let data = "tree:dirs=100,files=30,bytes=1";
    replays(
        &["--at", slow, "--at", "fast=ext4:size=64M", "--data", data, "--cache", "cold", "-n", "2"],
        &["find", "."],
    );
}

#[test]
fn of_a_run_in_a_directory() {
    replays(&[], &["ls", "-l", "/usr/bin"]);
}

#[test]
fn of_many_processes() {
    let scratch = scratch();
    let children = fixture("children", scratch.path());
    replays(&[], &[children.to_str().expect("a path in ASCII"), "300", "vfork"]);
}
