//! The HTML report in a real browser: real recordings, hostile names included, clicked through in headless Chromium.

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{inodyne, machine, run, scratch};

fn drive(arguments: &[&OsStr]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/drive.py");
    let outcome = run(Command::new("python3").arg(script).args(arguments));
    assert_eq!(outcome.code(), Some(0), "{}\n{}", outcome.text(), outcome.stderr);
}

fn report(recording: &Path) -> PathBuf {
    let page = recording.with_extension("html");
    run(inodyne().arg("show").arg(recording).arg("-o").arg(&page)).ended_with(0);
    page
}

#[test]
fn a_report_of_two_places_can_be_clicked_through() {
    let _machine = machine();
    let scratch = scratch();
    let recording = scratch.path().join("two.inodyne");
    let mut command = inodyne();
    command.args(["run", "-n", "3", "--at", "slow=ext4:size=64M,mkfs=-O ^filetype", "--at", "fast=ext4:size=64M"]);
    command.args(["--data", "tree:dirs=100,files=30,bytes=1", "--cache", "cold", "-o"]).arg(&recording);
    run(command.args(["--", "sh", "-c", "find . | xargs -n 500 -P 2 stat >/dev/null"])).ended_with(0);
    drive(&["--expect".as_ref(), "dtype-missing".as_ref(), report(&recording).as_os_str()]);
}

#[test]
fn names_of_files_are_text() {
    let _machine = machine();
    let scratch = scratch();
    let data = scratch.path().join("data");
    let hostile: [&[u8]; 5] = [
        b"<img src=x onerror=alert(1)>",
        b"<!-- x",
        "javascript:alert(1) \u{202e}txt.exe\u{2028}".as_bytes(),
        b"not utf-8 \xff\xfe",
        b"'\"&amp;<b>",
    ];
    for name in hostile {
        let directory = data.join(OsStr::from_bytes(name));
        fs::create_dir_all(&directory).expect("a directory of this name");
        for file in 0..40 {
            fs::write(directory.join(format!("{file}")), "").expect("a file");
        }
    }
    let recording = scratch.path().join("names.inodyne");
    let mut command = inodyne();
    command.args(["run", "--at", "x</script><script>alert(2)</script>=ext4:size=64M,mkfs=-O ^filetype", "--data"]);
    command.arg(&data).args(["-n", "1", "-o"]).arg(&recording).args(["--", "find", ".", "-not", "-name"]);
    run(command.arg("</script><img src=x onerror=alert(3)>\u{202e}")).ended_with(0);
    let page = report(&recording);
    let expected = ["<img src=x onerror=alert(1)>", "\\u{202e}", "\u{fffd}", "</script><script>alert(2)</script>"];
    let mut arguments: Vec<&OsStr> = expected.iter().flat_map(|text| ["--expect".as_ref(), text.as_ref()]).collect();
    arguments.push(page.as_os_str());
    drive(&arguments);
}
