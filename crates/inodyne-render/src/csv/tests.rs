//! Every table can be read again with all its numbers, and its columns are documented.

use std::path::Path;

use inodyne_model::files::{FileUse, Files};
use inodyne_model::recording::Recording;
use inodyne_model::run::{Exit, Run};
use inodyne_model::sample;
use inodyne_model::trace::{Overhead, PathCount, Paths, Tracer};

use super::*;
use crate::text::tests::section;

fn explained(mut recording: Recording) -> Recording {
    inodyne_analyse::explain(&mut recording);
    recording
}

/// The names of the columns, and the rows.
fn read(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let columns = reader.headers().expect("a line of names").iter().map(str::to_owned).collect();
    let row = |row: Result<::csv::StringRecord, ::csv::Error>| row.expect("whole").iter().map(str::to_owned).collect();
    (columns, reader.records().map(row).collect())
}

/// The values of a column as numbers.
fn numbers(text: &str, column: &str) -> Vec<f64> {
    let (columns, rows) = read(text);
    let at = columns.iter().position(|name| name == column).expect("such a column");
    rows.iter().map(|row| row[at].parse().unwrap_or(f64::NAN)).collect()
}

#[test]
fn rows_are_those_of_the_recording_with_all_digits() {
    let mut recording = sample::overlay_recording();
    sample::add_block_io(&mut recording.traces[0]);
    sample::add_page_cache(&mut recording.traces[0]);
    let mut recording = explained(recording);
    recording.traces[0].paths = Some(Paths {
        looked_up: vec![PathCount {
            path: "a,\"b\"\nc".to_owned(),
            syscall: "openat".to_owned(),
            calls: 3,
            not_found: 2,
            wall_ns: sample::ms(1.0),
        }],
        not_kept: 0,
    });
    recording.traces[0].files = Some(Files { used: vec![FileUse::default(); 2], not_kept: 0 });
    let counts = Section::all().map(|section| (section.as_str(), read(&csv(&recording, section)).1.len()));
    let traces = &recording.traces;
    let expected = [
        ("tune", 0),
        ("comparison", recording.comparisons.len()),
        ("verdict", 4),
        ("ledger", traces.iter().map(|trace| trace.ledger.rows.len()).sum()),
        ("over-time", 0),
        ("requests", 0),
        ("findings", recording.findings.len()),
        ("functions", 384),
        ("syscalls", traces.iter().map(|trace| trace.syscalls.len()).sum()),
        ("paths", 1),
        ("files", 2),
        ("block", 5),
        ("io-over-time", 4),
        ("journals", 1),
        ("page-cache", 3),
        ("processes", traces.iter().map(|trace| crate::process::Processes::new(trace).all.len()).sum()),
        ("threads", traces.iter().flat_map(|trace| &trace.threads).map(|thread| thread.rows.len()).sum()),
        ("runs", recording.runs.len()),
        ("overhead", traces.len()),
        ("by-comm", traces.iter().flat_map(|trace| &trace.by_comm).map(|comm| comm.syscalls.len()).sum()),
    ];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
    let walls: Vec<f64> = recording.runs.iter().map(|run| run.wall_ns.0 as f64).collect();
    assert_eq!(numbers(&csv(&recording, section("runs")), "wall_ns"), walls);
    let ratios: Vec<f64> = recording.comparisons.iter().map(|c| c.ratio.unwrap_or(f64::NAN)).collect();
    assert_eq!(numbers(&csv(&recording, section("comparison")), "ratio"), ratios);
    let durable = explained(sample::durable_recording());
    let (columns, rows) = read(&csv(&durable, section("verdict")));
    let metric = columns.iter().position(|name| name == "metric").expect("a column");
    assert_eq!(rows.iter().map(|row| row[metric].as_str()).collect::<Vec<_>>(), ["wall", "durable", "wall", "durable"]);
    let to_durable: Vec<f64> =
        durable.runs.iter().map(|run| run.durable_ns.map_or(f64::NAN, |ns| ns.0 as f64)).collect();
    assert_eq!(numbers(&csv(&durable, section("runs")), "durable_ns"), to_durable);
    let sums = numbers(&csv(&recording, section("ledger")), "ns").iter().sum::<f64>();
    assert_eq!(sums, traces.iter().map(|trace| trace.ledger.wall_ns.0 as f64).sum::<f64>());
}

#[test]
fn what_a_log_does_not_have_is_empty() {
    let mut recording = sample::find_recording();
    for trace in &mut recording.traces {
        trace.tracer = Tracer::Strace;
    }
    let recording = explained(recording);
    let used = [
        "user_ns",
        "sys_ns",
        "voluntary_switches",
        "involuntary_switches",
        "major_faults",
        "minor_faults",
        "max_rss_bytes",
    ];
    let parts = ["cpu_ns", "runqueue_ns", "blocked_ns"];
    let of_sections: [(&str, &[&str]); 4] =
        [("processes", &parts[..1]), ("syscalls", &parts), ("by-comm", &parts), ("runs", &used)];
    for (name, unknown) in of_sections {
        let text = csv(&recording, section(name));
        let (columns, rows) = read(&text);
        let traced = columns.iter().position(|column| column == "traced");
        assert!(!rows.is_empty(), "{name}");
        for column in unknown {
            let at = columns.iter().position(|known| known == column).expect("such a column");
            // Untraced runs were measured.
            let is_known = |row: &Vec<String>| traced.is_some_and(|traced| row[traced] == "false");
            assert!(rows.iter().all(|row| row[at].is_empty() != is_known(row)), "{name}: {column}: {text}");
        }
    }
}

#[test]
fn what_a_log_does_not_say_about_its_cost_is_empty() {
    let mut recording = explained(sample::find_recording());
    let costs = ["ratio", "estimated", "at_least", "ns_per_call", "other_ns", "reader_ns"];
    let known = |recording: &Recording| {
        let (columns, rows) = read(&csv(recording, section("overhead")));
        costs.map(|cost| !rows[0][columns.iter().position(|column| column == cost).expect("such a column")].is_empty())
    };
    assert_eq!(known(&recording), [true; 6]);
    recording.traces[0].tracer = Tracer::Strace;
    recording.traces[0].overhead = Overhead { ratio: 1.0, estimated: true, ..Overhead::default() };
    assert_eq!(known(&recording), [false; 6], "a log from elsewhere");
    recording.traces[0].overhead = Overhead { ratio: 5.0, estimated: true, ns_per_call: 9e4, ..Overhead::default() };
    assert_eq!(known(&recording), [true, true, true, true, false, false], "strace ran here");
}

#[test]
fn a_row_is_a_line_whatever_the_names() {
    let mut recording = explained(sample::find_recording());
    recording.places[0].label = "a,\"b\"\r\nc\u{1b}[2J\u{202e}".to_owned();
    recording.runs[0] = Run { exit: Exit::Signal(9), ..recording.runs[0].clone() };
    for section in Section::all() {
        let text = csv(&recording, section);
        assert_eq!(text.lines().count(), read(&text).1.len() + 1, "{section}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202e}'), "{section}");
    }
    let (columns, rows) = read(&csv(&recording, section("runs")));
    assert_eq!((columns[1].as_str(), rows[0][1].as_str()), ("place", r#"a,"b"\r\nc\u{1b}[2J\u{202e}"#));
    let exits =
        ["exit_code", "exit_signal"].map(|name| columns.iter().position(|column| column == name).expect("a column"));
    assert_eq!(exits.map(|at| rows[0][at].as_str()), ["", "9"]);
}

#[test]
fn of_nothing_there_are_the_names_of_the_columns() {
    for section in Section::all() {
        assert_eq!(csv(&sample::empty(), section).lines().count(), 1, "{section}");
    }
}

#[test]
fn format_md_names_every_column() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../FORMAT.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, page) = page.split_once("\n## CSV\n").expect("a chapter");
    for section in Section::all() {
        let line = page.lines().find(|line| line.starts_with(&format!("| `{section}` |"))).expect("a row");
        for column in read(&csv(&sample::empty(), section)).0 {
            let common = page.lines().find(|line| line.starts_with("`trace`")).expect("what all have");
            assert!(
                line.contains(&format!("`{column}`")) || common.contains(&format!("`{column}`")),
                "{section}: {column}"
            );
        }
    }
}
