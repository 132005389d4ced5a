//! The command line as users and scripts see it.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use inodyne_model::sample;
use serde_json::Value;
use support::{inodyne, run};

fn printed(arguments: &[&str]) -> String {
    run(inodyne().args(arguments)).ended_with(0).text()
}

/// `--help` is part of the interface: a change of it is seen in review.
#[test]
fn help() {
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["compare", "--help"],
        &["study", "--help"],
        &["study", "run", "--help"],
        &["attach", "--help"],
        &["top", "--help"],
        &["import", "--help"],
        &["show", "--help"],
        &["diff", "--help"],
        &["prove", "--help"],
        &["tune", "--help"],
        &["explain", "--help"],
        &["rm", "--help"],
        &["tree", "make", "--help"],
        &["tree", "check", "--help"],
        &["share", "serve", "--help"],
        &["share", "mount", "--help"],
        &["doctor", "--help"],
    ] {
        let name = arguments.join("-").replace("--help", "help");
        insta::assert_snapshot!(name, printed(arguments));
    }
}

#[test]
fn the_manual_names_every_option_of_run() {
    let manual = printed(&["manual", "man"]);
    for option in ["at", "data", "cache", "runs", "prepare", "cleanup", "user", "env", "format", "output"] {
        assert!(manual.contains(&format!("\\-\\-{}", option.replace('-', "\\-"))), "{option}");
    }
    assert!(manual.starts_with(".ie"), "{}", &manual[..40]);
}

#[test]
fn words_of_a_report_are_explained() {
    let page = printed(&["explain", "cold-data"]);
    assert!(page.starts_with("cold-data\n\n") && page.contains("\nCure\n"), "{page}");
    assert!(printed(&["explain", "waiting", "for", "a", "CPU"]).contains("`runqueue`"));
    let all = printed(&["explain"]);
    for word in ["Findings\n", "sync-bound", "write-throttle", "unexplained", "log2 histogram"] {
        assert!(all.contains(word), "{word}: {all}");
    }
    assert!(all.lines().all(|line| line.len() <= 80) && !all.contains('\x1b'), "{all}");
    let line = run(inodyne().args(["explain", "dtype"])).failed_in_one_line(2);
    assert!(line.contains("did you mean dtype-missing?"), "{line}");
}

#[test]
fn completions_are_made_for_three_shells() {
    for (shell, word) in [("bash", "complete -F"), ("zsh", "#compdef inodyne"), ("fish", "complete -c inodyne")] {
        assert!(printed(&["manual", shell]).contains(word), "{shell}");
    }
}

#[test]
fn every_subcommand_has_a_man_page_when_it_is_installed() {
    let scratch = support::scratch();
    let share = scratch.path().join("share");
    run(inodyne().args(["manual", "install"]).arg(&share)).ended_with(0);
    for page in ["inodyne", "inodyne-run", "inodyne-study-run", "inodyne-share-mount", "inodyne-tree-make"] {
        let text = std::fs::read_to_string(share.join(format!("man/man1/{page}.1"))).expect("the page is there");
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    pages_lead_to_pages(&share.join("man/man1"));
    for file in
        ["bash-completion/completions/inodyne", "zsh/site-functions/_inodyne", "fish/vendor_completions.d/inodyne.fish"]
    {
        assert!(std::fs::metadata(share.join(file)).is_ok_and(|file| file.len() > 1000), "{file}");
    }
    let failed = run(inodyne().args(["manual", "install", "/proc/no/such"])).failed_in_one_line(3);
    assert!(failed.contains("/proc/no/such"), "{failed}");
    run(inodyne().args(["manual", "install"])).ended_with(2);
    run(inodyne().args(["manual", "bash", "/tmp"])).failed_in_one_line(2);
}

/// Its operands are what comes after the word; a word before it is no operand.
#[test]
fn rm_removes_nothing_but_its_own_operands() {
    for global in [&["--color", "never"][..], &["--color=never"], &[]] {
        let scratch = support::scratch();
        for name in ["never", "rm", "build"] {
            fs::create_dir(scratch.path().join(name)).expect("made");
        }
        run(inodyne().current_dir(scratch.path()).args(global).args(["rm", "-rf", "build"])).ended_with(0);
        let mut left: Vec<_> =
            fs::read_dir(scratch.path()).expect("there").map(|entry| entry.expect("an entry").file_name()).collect();
        left.sort();
        assert_eq!(left, ["never", "rm"], "{global:?}");
    }
}

#[test]
fn a_report_that_cannot_be_printed_loses_no_measurement() {
    let scratch = support::scratch();
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" run --no-trace --format json true >/dev/full", env!("CARGO_BIN_EXE_inodyne")]);
    let line = run(command.env("TMPDIR", scratch.path())).failed_in_one_line(3);
    assert!(line.contains("the recording is in ") && line.contains("No space left"), "{line}");
    assert_eq!(fs::read_dir(scratch.path()).expect("there").count(), 1);
}

#[test]
fn a_report_that_cannot_be_printed_does_not_keep_the_other_from_its_file() {
    let scratch = support::scratch();
    let page = scratch.path().join("x.html");
    let mut command = Command::new("sh");
    let script = "\"$0\" run --no-trace --format json --report \"$1\" true >/dev/full";
    command.args(["-c", script, env!("CARGO_BIN_EXE_inodyne")]).arg(&page).env("TMPDIR", scratch.path());
    let line = run(&mut command).failed_in_one_line(3);
    assert!(line.contains("the recording is in ") && line.contains("No space left"), "{line}");
    assert!(fs::read_to_string(&page).expect("it was written").contains("<html"));
}

#[test]
fn a_table_in_a_file_is_of_the_section_that_was_asked_for() {
    let scratch = support::scratch();
    let (table, page) = (scratch.path().join("x.csv"), scratch.path().join("x.html"));
    let written = |section: &str, file: &Path| {
        let arguments = ["run", "-n", "2", "--no-trace", "--section", section, "--report"];
        run(inodyne().args(arguments).arg(file).arg("true")).ended_with(0);
        fs::read_to_string(file).expect("it was written")
    };
    let (of_calls, of_runs) = (written("syscalls", &table), written("runs", &table));
    assert!(of_calls.contains("syscall") && !of_runs.contains("syscall"), "{of_calls}\n{of_runs}");
    assert!(written("syscalls", &page).contains("<html"), "a page is whole");
}

#[test]
fn a_report_belongs_to_who_called_sudo_and_keeps_its_permissions() {
    let scratch = support::scratch();
    let (kept, report) = (scratch.path().join("x.inodyne"), scratch.path().join("x.html"));
    run(inodyne().args(["run", "--no-trace", "-o"]).arg(&kept).arg("true")).ended_with(0);
    for mode in [None, Some(0o600)] {
        if let Some(mode) = mode {
            fs::set_permissions(&report, fs::Permissions::from_mode(mode)).expect("it is there");
        }
        let mut show = inodyne();
        show.arg("show").arg(&kept).arg("-o").arg(&report).envs([("SUDO_UID", "65534"), ("SUDO_GID", "65533")]);
        run(&mut show).ended_with(0);
        let found = fs::metadata(&report).expect("it was written");
        assert_eq!((found.uid(), found.gid()), (65534, 65533));
        assert!(mode.is_none_or(|mode| found.mode() & 0o777 == mode), "{:o}", found.mode());
    }
}

/// Each page has examples and exit codes, and names pages that exist.
fn pages_lead_to_pages(directory: &Path) {
    let mut named = 0;
    for entry in fs::read_dir(directory).expect("made") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a page");
        for section in [".SH EXAMPLES", ".SH \"EXIT STATUS\"", ".SH \"SEE ALSO\""] {
            assert!(text.contains(section), "{section} in {}: {text}", path.display());
        }
        for (at, _) in text.match_indices("(1)") {
            let name =
                text[..at].rsplit([' ', '\n', ',']).next().unwrap_or_default().replace("\\fB", "").replace('\\', "");
            assert!(directory.join(format!("{name}.1")).exists(), "{name} in {}", path.display());
            named += 1;
        }
    }
    assert!(named > 50, "{named}");
}

#[test]
fn a_program_without_run_is_hinted_at() {
    let line = run(inodyne().args(["true", "."])).failed_in_one_line(2);
    assert!(line.contains("inodyne run true"), "{line}");
}

#[test]
fn files_of_another_form_are_refused_before_anything_runs() {
    let scratch = support::scratch();
    let touched = scratch.path().join("touched");
    for arguments in [&["-o", "x.pdf"][..], &["-o", "x.html"], &["--report", "x.pdf"]] {
        let outcome = run(inodyne().arg("run").args(arguments).arg("touch").arg(&touched)).ended_with(2);
        assert!(outcome.stderr.contains(arguments[1]) && outcome.stderr.contains(".html"), "{}", outcome.stderr);
    }
    assert!(!touched.exists());
    for arguments in [&["show", "none.inodyne", "-o", "x.pdf"][..], &["diff", "none", "none", "-o", "x.csv"]] {
        let line = run(inodyne().args(arguments)).failed_in_one_line(2);
        assert!(line.contains("is not a known format"), "{line}");
    }
}

/// Whoever reads the other end has read a recording once that is closed, and nobody would read a second one.
#[test]
fn a_pipe_gets_one_recording() {
    let scratch = support::scratch();
    for script in [
        "\"$0\" run --no-trace -n 2 -o /dev/stdout true >open && \"$0\" show open >shown",
        "mkfifo pipe; \"$0\" show pipe >shown & \"$0\" run --no-trace -n 2 -o pipe true; wait $!",
    ] {
        let mut command = Command::new("timeout");
        command.args(["60", "bash", "-c", script, env!("CARGO_BIN_EXE_inodyne")]).current_dir(scratch.path());
        run(&mut command).ended_with(0);
        let shown = fs::read_to_string(scratch.path().join("shown")).expect("it was shown");
        assert!(shown.starts_with("true "), "{script}: {shown}");
    }
}

/// A name without an ending could be either.
#[test]
fn what_is_read_is_not_written_over() {
    let scratch = support::scratch();
    let [log, kept] = ["log", "kept"].map(|name| scratch.path().join(name));
    fs::write(&log, "1.0 execve(\"/bin/true\", [\"true\"], 0x1) = 0 <0.1>\n2.0 +++ exited with 0 +++\n")
        .expect("a log");
    run(inodyne().arg("import").arg(&log).arg("-o").arg(&kept)).ended_with(0);
    let before = [&log, &kept].map(|file| fs::read(file).expect("it is there"));
    for command in
        [&["import", "log", "-o", "log"][..], &["show", "kept", "-o", "kept"], &["diff", "kept", "kept", "-o", "kept"]]
    {
        let line = run(inodyne().args(command).current_dir(scratch.path())).failed_in_one_line(2);
        assert!(line.contains("this is the file that is read"), "{command:?}: {line}");
    }
    assert_eq!([&log, &kept].map(|file| fs::read(file).expect("it is there")), before);
}

#[test]
fn colours_and_signs_are_as_asked() {
    let shown = |locale: &str, arguments: &[&str]| {
        let _machine = support::machine();
        let outcome = run(inodyne().args(arguments).args(["run", "true"]).env("LC_ALL", locale)).ended_with(0);
        outcome.stderr
    };
    let plain = shown("C", &[]);
    assert!(plain.is_ascii() && !plain.contains('\x1b'), "{plain}");
    let coloured = shown("en_US.UTF-8", &["--color", "always"]);
    assert!(!coloured.is_ascii() && coloured.contains("\x1b[1m"), "{coloured}");
}

#[test]
fn the_output_of_several_runs_is_shown_once() {
    let _machine = support::machine();
    for options in [&["-n", "3"][..], &["-n", "3", "--no-trace"], &["--no-trace"], &[]] {
        // A command's own options, and a second `--`, are its own.
        let outcome = run(inodyne().arg("run").args(options).args(["printf", "%s-", "-n", "--"])).ended_with(0);
        assert_eq!(outcome.text(), "-n----", "{options:?}");
    }
}

#[test]
fn calls_of_a_class_are_shown_alone() {
    let _machine = support::machine();
    let calls = |section: &str| {
        let arguments = ["run", "--format", "json", "--section", section, "cat", "/dev/null"];
        let rows: Vec<Value> = serde_json::from_slice(&run(inodyne().args(arguments)).ended_with(0).stdout).unwrap();
        rows.iter().map(|row| row["syscall"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let [all, of_files] = ["syscalls", "calls=file"].map(calls);
    assert!(all.contains(&"read".to_owned()) && all.contains(&"openat".to_owned()), "{all:?}");
    assert!(of_files.contains(&"openat".to_owned()) && !of_files.contains(&"read".to_owned()), "{of_files:?}");
    let arguments = ["run", "--section", "calls=%memory", "cat", "/dev/null"];
    let text = run(inodyne().args(arguments)).ended_with(0).stderr;
    assert!(text.contains("System calls on memory") && text.contains("mmap") && !text.contains("openat"), "{text}");
}

/// Every key that there is must be described, although readers are to ignore others.
fn described(recording: &Value, schema: &jsonschema::Validator) {
    let errors: Vec<String> =
        schema.iter_errors(recording).take(5).map(|error| format!("{}: {error:.200}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// The schema with no keys but those that it names.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.contains_key("properties") {
                object.insert("additionalProperties".to_owned(), false.into());
            }
            object.values_mut().for_each(strict);
        }
        Value::Array(values) => values.iter_mut().for_each(strict),
        _ => {}
    }
}

#[test]
fn recordings_are_as_the_schema_says() {
    let mut schema = serde_json::from_str(include_str!("../docs/recording.schema.json")).expect("it is JSON");
    strict(&mut schema);
    let schema = jsonschema::validator_for(&schema).expect("it is a schema");
    let samples =
        [sample::find_recording(), sample::pipeline_recording(), sample::window_recording(), sample::tuned_recording()];
    for mut sample in samples {
        sample.traces.iter_mut().take(1).for_each(sample::add_block_io);
        inodyne_analyse::explain(&mut sample);
        described(&serde_json::to_value(&sample).expect("plain data"), &schema);
    }
    let _machine = support::machine();
    let around = [
        "--paths",
        "--files",
        "--prepare",
        "true",
        "-n",
        "2",
        "--cache",
        "warm",
        "--at",
        "tmpfs",
        "--at",
        "ext4:size=64M,delay=1ms",
    ];
    let script = "find /usr/include | head -n 100 & dd if=/dev/zero of=x bs=64k count=9 conv=fsync; ls /none; wait";
    let outcome = run(support::traced(&around, support::sh(script)).env("X", "y"));
    let mut recording: Value = serde_json::from_slice(&outcome.stdout).expect("a recording");
    described(&recording, &schema);
    recording["traces"][0]["other"] = 1.into();
    assert!(!schema.is_valid(&recording));
}

#[test]
fn usage_mistakes_end_with_two() {
    for arguments in [
        &["run"][..],
        &["run", "--cache", "tepid", "--", "true"],
        &["run", "--at", "ext5:size=1G", "--", "true"],
        &["run", "--at", "ext4:size=lots", "--", "true"],
        &["run", "--ring-buffer", "5000", "--", "true"],
        &["run", "--env", "NAME", "--", "true"],
        &["show"],
        &["show", "--section", "everything", "x.inodyne"],
        &["show", "--section", "runs", "--format", "json", "x.inodyne"],
        &["run", "--format", "hyperfine", "--", "true"],
        &["run", "--format", "svg-card", "--no-trace", "--", "true"],
        &["compare", "--format", "svg-card", "--traced", "0", "-c", "true", "-c", "false"],
        &["tune", "--at", "tmpfs", "--format", "svg-card", "--", "true"],
        &["study", "run", "find-dtype", "--format", "svg-card", "--section", "runs"],
        &["show", "--trace", "1", "x.inodyne"],
        &["show", "--trace", "1", "--format", "html", "x.inodyne"],
        &["diff", "x.inodyne"],
        &["prove"],
        &["prove", "-n", "0", "x.inodyne"],
        &["tune", "--at", "ext4"],
        &["tune", "--at", "ext4", "--setting", "comit=60", "--", "true"],
        &["tune", "--at", "/etc", "--", "true"],
        &["tune", "--at", "ext4", "--live", "--", "true"],
        &["tune", "--at", "ext4", "--objective", "soon", "--", "true"],
        &["tune", "--at", "ext4", "--objective", "highest:", "--", "true"],
        &["dance"],
    ] {
        let outcome = run(inodyne().args(arguments)).ended_with(2);
        assert!(outcome.stdout.is_empty() && !outcome.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn doctor_finds_this_machine_fit() {
    let told = printed(&["doctor"]);
    assert!(told.contains("ok       time off the CPU"), "{told}");
    assert!(told.ends_with("inodyne run works here\n"), "{told}");
}
