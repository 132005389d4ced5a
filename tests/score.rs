//! What is said about programs that nobody here wrote. `make score` tries all of them and writes the table; here are those whose trouble is
//! waiting, which a busy machine does not change. It does change whether a saving is as predicted, so that is left to `make score`, whose
//! table is held to its floor.

mod support;

use std::path::Path;
use std::process::Command;

use support::{inodyne, machine};

const CASES: &str = include_str!("../bench/corpus/cases.toml");
const TABLE: &str = include_str!("../docs/findings/score.md");

/// They need nothing that the tests do not install.
const WAITING: [&str; 12] = [
    "dd-dsync",
    "find-cold",
    "grep-cold",
    "sum-slow-device",
    "find-no-types",
    "sh-true",
    "sleep",
    "tail-follow",
    "flock-turns",
    "overlay-chown",
    "xargs-parallel",
    "sync-many-files",
];

/// The percentage after these words in the table's summary.
fn percent_after(words: &str) -> f64 {
    let (_, rest) = TABLE.split_once(words).unwrap_or_else(|| panic!("the summary has {words:?}"));
    let (number, _) = rest.split_once('%').expect("a share");
    let number = number.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    number.parse().unwrap_or_else(|_| panic!("no number after {words:?}"))
}

#[test]
fn the_table_is_of_these_programs_and_above_its_floor() {
    let of_case = |line: &'static str| line.strip_prefix("name = \"").and_then(|rest| rest.strip_suffix('"'));
    let cases: Vec<&str> = CASES.lines().filter_map(of_case).collect();
    let rows = TABLE.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: Vec<&str> = rows.filter(|name| *name != "program").collect();
    assert_eq!(rows, cases, "make score writes it");
    assert!(cases.len() >= 30, "{}", cases.len());
    let [right, width] = ["First finding right: ", "half the width of these intervals is "].map(percent_after);
    assert!(right >= 90.0 && width <= 25.0, "{right}% are right, half the width is {width}%");
    let [outside, tried] = ["**outside**", "; measured "].map(|words| TABLE.matches(words).count());
    assert!(tried > 5 && outside * 5 <= tried, "{outside} of {tried} predictions do not hold");
}

#[test]
fn what_waits_is_said_to_wait_for_what_it_does() {
    let _machine = machine();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/score-findings");
    let mut command = Command::new(script);
    command
        .arg(inodyne().get_program())
        .args(["--runs", "3", "--no-cures"])
        .args(WAITING.iter().flat_map(|case| ["--only", case]));
    let done = command.output().expect("the tests need python3");
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{told}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(told.contains(&format!(" of {} (", WAITING.len())), "{told}");
}
