//! README's examples, run: what each command prints has the lines that README shows, except for figures. Structure must be there;
//! rows of tables and remarks come and go with what else the machine does, so most of them have to be.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use support::{inodyne, machine, run, scratch};

const README: &str = include_str!("../README.md");
/// Where README says that the recording of the command above is kept.
const KEPT: &str = "sync.inodyne";

/// A block of README that shows what a command prints.
struct Example {
    /// The command; none where the block goes on with the one before, in full.
    command: Option<String>,
    printed: Vec<&'static str>,
}

/// All blocks that show output, in their order.
fn examples() -> Vec<Example> {
    let blocks = README.split("```\n").skip(1).step_by(2);
    let example = |block: &'static str| {
        let Some(rest) = block.strip_prefix("$ sudo ") else {
            let is_output = block.starts_with("Where the time went");
            return is_output.then(|| Example { command: None, printed: block.lines().collect() });
        };
        // A line that ends with a backslash goes on.
        let continued = rest.lines().take_while(|line| line.ends_with('\\')).count();
        let command = rest.lines().take(continued + 1).collect::<Vec<_>>().join("\n");
        Some(Example { command: Some(command), printed: rest.lines().skip(continued + 1).collect() })
    };
    blocks.filter_map(example).collect()
}

/// The words of a line, without figures, units, bars, and what is cut.
fn words(line: &str) -> String {
    const UNITS: [&str; 5] = ["ns", "µs", "ms", "s", "min"];
    let is_word = |word: &&str| {
        word.chars().any(|c| c.is_ascii_alphabetic())
            && !word.contains(|c: char| c.is_ascii_digit() || c == '…')
            && !UNITS.contains(&word.trim_matches([',', ':']))
    };
    // Of several findings another may come first.
    let line = line.split("inodyne explain ").next().unwrap_or(line);
    // Whether the overhead can be told from the noise depends on what else the machine does.
    let overhead = line.strip_prefix("Tracing overhead ").and_then(|line| line.split_once(" · "));
    let line = overhead.map_or(line, |(_, rest)| rest);
    line.split_whitespace().filter(is_word).collect::<Vec<_>>().join(" ")
}

/// Whether a line says which of two is faster, or that this is not known.
fn is_verdict(line: &str) -> bool {
    ["faster than", "slower than", "times as", "no difference", "not enough runs"]
        .iter()
        .any(|form| line.contains(form))
}

/// What README shows is what was printed.
fn check(command: &str, shown: &[&str], printed: &str) {
    let lines: Vec<String> = printed.lines().map(words).collect();
    let is_there = |line: &str| lines.iter().any(|printed| printed.starts_with(&words(line)));
    let (mut rows, mut missing) = (0, Vec::new());
    for line in shown.iter().filter(|line| !words(line).is_empty()) {
        if is_verdict(line) && !line.starts_with(' ') {
            assert!(printed.lines().any(is_verdict), "{command}: no verdict in\n{printed}");
        } else if line.starts_with(' ') {
            rows += 1;
            missing.extend((!is_there(line)).then_some(*line));
        } else {
            assert!(is_there(line), "{command}: {line:?} is in README, and not in\n{printed}");
        }
    }
    let most = rows / 2;
    assert!(missing.len() <= most, "{command}: README shows these, too: {missing:#?}\n{printed}");
}

/// Runs a command of README as it stands there; returns what it prints on both streams.
fn printed_by(command: &str, directory: &Path) -> String {
    let path = format!("{}:{}", directory.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", path).env("LC_ALL", "C.UTF-8").current_dir(directory);
    run(shell.args(["-c", &format!("{{ {command}\n}} 2>&1")])).ended_with(0).text()
}

#[test]
fn examples_print_what_the_readme_shows() {
    let _machine = machine();
    let scratch = scratch();
    let directory = scratch.path();
    fs::create_dir(directory.join("bin")).expect("a directory");
    symlink(inodyne().get_program(), directory.join("bin/inodyne")).expect("a link");
    let all = examples();
    assert!(all.len() >= 4, "README has its examples");
    // The dd of the second example, which the third is about.
    let compared = all.iter().filter_map(|one| one.command.as_deref()).find(|command| command.contains(" compare "));
    let traced = compared.and_then(|command| command.split_once("-- ")).map(|(_, command)| command);
    let dd = traced.expect("an example compares places");
    for Example { command, printed } in &all {
        let Some(command) = command else {
            let whole = printed_by("inodyne show -v last.inodyne", directory);
            check("inodyne show -v", printed, &whole);
            continue;
        };
        if command.contains(KEPT) {
            printed_by(&format!("inodyne run -n 5 -o {KEPT} --at ext4 -- {dd}"), directory);
        }
        let asked = command.replacen("inodyne prove", "inodyne prove --yes", 1);
        let asked = asked.replacen("inodyne run", "inodyne run -o last.inodyne", 1);
        // Fewer runs print the same, except for figures.
        let asked = asked.replacen("-n 20", "-n 8", 1);
        let mut seen = printed_by(&asked, directory);
        if command.starts_with("inodyne run") {
            // Which rows a first screen has room for is not the same each time.
            seen.push_str(&printed_by("inodyne show -v last.inodyne", directory));
        }
        check(command, printed, &seen);
    }
}
