//! The command line as users and scripts see it.

mod support;

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
        &["import", "--help"],
        &["show", "--help"],
        &["diff", "--help"],
        &["prove", "--help"],
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
        &["diff", "x.inodyne"],
        &["prove"],
        &["prove", "-n", "0", "x.inodyne"],
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
