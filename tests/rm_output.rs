//! What `inodyne rm` prints besides GNU rm's messages, and what becomes of it when nobody reads it or nobody can.

mod support;

use std::{
    fs,
    io::pipe,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::Path,
    process::{Command, Output, Stdio},
};

use support::programs::copy_for_everybody;

const INODYNE: &str = env!("CARGO_BIN_EXE_inodyne");

/// Runs a shell script in `place`; `$rm` is `inodyne rm`.
fn shell(place: &Path, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(place).env("rm", format!("{INODYNE} rm")).env("LC_ALL", "C");
    command.output().expect("sh runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a temporary directory")
}

#[test]
fn what_cannot_be_printed_is_an_error_as_in_gnu_rm() {
    for (ours, files) in [("$rm -rv d", 0), ("$rm -r --json d", 0), ("$rm -r --dry-run d", 3), ("$rm --help", 3)] {
        let place = place();
        let script = format!("mkdir d; touch d/a d/b; {ours} >/dev/full; echo $?; find . -mindepth 1 | wc -l");
        let output = shell(place.path(), &script);
        assert_eq!(text(&output.stdout), format!("1\n{files}\n"), "{ours}");
        assert!(text(&output.stderr).starts_with("rm: write error: No space left on device"), "{ours}: {output:?}");
    }
    let place = place();
    // Messages that cannot be written neither stop nor break it.
    let output = shell(place.path(), "touch a; $rm nope a 2>/dev/full; echo $?; $rm --nope 2>/dev/full; echo $?; ls");
    assert_eq!(text(&output.stdout), "1\n1\n");
}

#[test]
fn a_reader_that_went_away_stops_it_as_it_stops_gnu_rm() {
    for program in [vec!["rm"], vec![INODYNE, "rm"]] {
        for options in [&["-rfv"][..], &["-rv", "--interactive=always"]] {
            let place = place();
            fs::create_dir(place.path().join("d")).expect("made");
            (0..2000).for_each(|n| fs::write(place.path().join(format!("d/{n}")), "").expect("written"));
            let answers = "y\n".repeat(2010);
            fs::write(place.path().join("answers"), answers).expect("written");
            let (reader, writer) = pipe().expect("a pipe");
            drop(reader);
            let mut command = Command::new(program[0]);
            command.args(&program[1..]).args(options).arg("d").current_dir(place.path());
            command.stdin(fs::File::open(place.path().join("answers")).expect("opened"));
            let output = command.stdout(writer).stderr(Stdio::piped()).output().expect("it runs");
            assert_eq!(output.status.signal(), Some(13), "{program:?}");
            assert!(place.path().join("d").exists(), "{program:?} went on");
            if program[0] == INODYNE {
                let said = text(&output.stderr);
                assert!(said.ends_with("left: 'd'\n"), "{said}");
            }
        }
    }
}

#[test]
fn answers_to_others_are_left_to_them() {
    for rm in ["rm", "$rm"] {
        let place = place();
        let script = format!(
            "touch a b c; printf 'y\\nn\\nrest\\n' >answers
             {{ {rm} -i a; {rm} -I a b c answers; cat; }} <answers 2>/dev/null; ls"
        );
        assert_eq!(text(&shell(place.path(), &script).stdout), "rest\nanswers\nb\nc\n", "{rm}");
    }
}

#[test]
fn a_dry_run_counts_what_would_be_free_and_says_so() {
    let place = place();
    let output = shell(
        place.path(),
        "mkdir t; dd if=/dev/zero of=t/a bs=64K count=1 conv=fsync 2>/dev/null; ln t/a t/b; ln t/a c; truncate -s 1G t/sparse
         $rm -r --dry-run t; $rm -r --dry-run t c; yes | $rm -ri --dry-run c t 2>/dev/null
         du -B1 t/a | cut -f1; $rm -rv --dry-run c t; ls c t",
    );
    let said = text(&output.stdout);
    let lines: Vec<_> = said.lines().collect();
    let size = lines.iter().position(|line| line.parse::<u64>().is_ok()).expect("what du says");
    let counted: Vec<_> = lines[..size].iter().filter(|line| line.starts_with("would remove")).collect();
    assert_eq!(counted[0], &format!("would remove 3 files and 1 directories, {} bytes allocated", lines[size]));
    for counted in &counted[1..] {
        assert_eq!(**counted, format!("would remove 4 files and 1 directories, {} bytes allocated", lines[size]));
    }
    let mut verbose = lines[size + 1..size + 6].to_vec();
    verbose.sort_unstable();
    let all = ["directory 't'", "'c'", "'t/a'", "'t/b'", "'t/sparse'"];
    let mut expected = all.map(|what| format!("would remove {what}"));
    expected.sort_unstable();
    assert_eq!(verbose, expected, "{said}");
    assert!(said.ends_with("c\n\nt:\na\nb\nsparse\n"), "{said}");
}

#[test]
fn a_dry_run_counts_operands_inside_others_once() {
    let place = place();
    let output = shell(
        place.path(),
        "mkdir -p d/e/f g; touch d/e/x d/y g/z a; ln -s d/e link
         for operands in 'd' 'd d' 'd/e d d/e/f' 'd ./d/ link/x g/../d/y'; do $rm -rf --dry-run $operands | head -n1; done
         $rm -rf --dry-run a a ./a g/z d/e/x | head -n1; $rm -rf --dry-run d/e/f d/y g | head -n1
         $rm -rf --dry-run . d/.. a 2>/dev/null | head -n1",
    );
    let count =
        |files, directories| format!("would remove {files} files and {directories} directories, 0 bytes allocated\n");
    let expected = [count(2, 3).repeat(4), count(3, 0), count(2, 2), count(1, 0)].concat();
    assert_eq!((text(&output.stdout), text(&output.stderr)), (expected, String::new()));
}

#[test]
fn on_a_terminal_progress_is_one_line_that_messages_do_not_run_into() {
    let place = place();
    // Slow enough to be seen: each unlinkat takes a fifth of a second.
    let output = shell(
        place.path(),
        "mkdir t; for n in 1 2 3 4 5 6 7 8 9; do mkdir t/$n; touch t/$n/f; chattr +i t/$n/f; done
         script -qec \"strace -f -o /dev/null -e trace=unlinkat -e inject=unlinkat:delay_exit=200000 \
         $rm -rf --progress --threads=1 t\" /dev/null; chattr -R -i t; $rm -r --progress t",
    );
    let said = text(&output.stdout);
    assert!(said.contains(" removed, "), "{said:?}");
    let wiped = "\r\u{1b}[Krm: cannot remove";
    assert!(said.contains(wiped), "no message wiped the line: {said:?}");
    for message in said.split("rm: cannot remove").skip(1).zip(said.split("rm: cannot remove")) {
        assert!(message.1.is_empty() || message.1.ends_with('\n') || message.1.ends_with("\r\u{1b}[K"), "{said:?}");
    }
    assert!(said.trim_end_matches("\r\u{1b}[K").ends_with('\n'), "{said:?}");
    assert_eq!(text(&output.stderr), "", "no terminal, no line");
}

#[test]
fn without_threads_to_be_had_everything_goes_nevertheless() {
    assert!(rustix::process::geteuid().is_root(), "this test becomes another user: run it as root");
    let place = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("opened up");
    copy_for_everybody(place.path());
    let as_other = "setpriv --reuid=54321 --regid=54321 --clear-groups bash -c";
    for strategy in ["auto", "groups", "single", "steal", "wide"] {
        // The limit counts threads of a user; this one has no others. The second leaves one besides the shell.
        for work in [
            "ulimit -u 1; exec $rm",
            "ulimit -u 2; ./inodyne tree check t || exit 9; exec $rm",
            "ulimit -u 3; exec $rm",
        ] {
            let output = shell(
                place.path(),
                &format!(
                    "./inodyne tree make t --dirs 300 --files 40 >/dev/null; chown -R 54321 t; rm='./inodyne rm'; export rm
                     {as_other} '{work} -rf --strategy={strategy} t' >check; echo $?; ls"
                ),
            );
            assert_eq!(
                (text(&output.stdout), text(&output.stderr)),
                ("0\ncheck\ninodyne\n".into(), String::new()),
                "{work}"
            );
        }
    }
}
