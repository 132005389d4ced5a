//! The pages keep up with the code: FORMAT.md names every key of a recording, every cause and finding has its page.

use std::collections::BTreeSet;
use std::path::Path;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::finding::Proof;
use inodyne_model::observed::{Helper, Timeline, Waker, Work};
use inodyne_model::recording::Recording;
use inodyne_model::run::Exit;
use inodyne_model::sample;
use inodyne_model::stack::{Frame, StackId};
use inodyne_model::statistics::{CallSpread, ChangePoint, Modes, Trend};
use inodyne_model::study::{Expectation, Part, Study};
use inodyne_model::trace::{PathCount, Paths, Refused};
use serde_json::Value;

/// Objects whose keys are data: names of errors, calls and settings.
const MAPS: [&str; 3] = ["errors_by_errno", "kernel_ns", "settings"];

/// An explained recording in which no optional field is left out.
fn full() -> Recording {
    let mut recording = sample::find_recording();
    recording.runs[0].exit = Exit::Signal(9);
    recording.runs.iter_mut().for_each(|run| run.durable_ns = Some(run.wall_ns));
    let observed = &mut recording.traces[0].observed;
    observed.programs[0].args_truncated = true;
    observed.threads[0].alive = true;
    observed.stacks[0].truncated = true;
    observed.stacks[0].frames.push(Frame::Unknown { address: 1 });
    observed.timeline = Timeline {
        thread: vec![1],
        out_ns: vec![1],
        blocked_ns: vec![1],
        ready_ns: vec![1],
        call: vec![0],
        stack: vec![0],
        waker: vec![Waker::Interrupt],
        waker_tid: vec![0],
        waker_thread: vec![0],
        waker_stack: vec![0],
        calls: vec![String::new()],
        stacks: vec![StackId(0)],
        ..Timeline::default()
    };
    observed.work = Work { thread: vec![1], at_ns: vec![1], parts: vec![1], call: vec![0], ns: vec![1] };
    observed.helpers = vec![Helper { number: 2, kernel_thread: true, ..Helper::default() }];
    inodyne_analyse::explain(&mut recording);
    recording.findings[0].proved = Some(Proof {
        how: "made with -O filetype".to_owned(),
        pairs: 10,
        base_ns: Nanos(2),
        wall_ns: Nanos(1),
        ratio: 0.5,
        ci_low: 0.4,
        ci_high: 0.6,
        within: true,
    });
    recording.findings[0].bound = true;
    let path = PathCount { path: "a".into(), syscall: "stat".into(), calls: 1, not_found: 0, wall_ns: Nanos(1) };
    recording.traces[0].paths = Some(Paths { looked_up: vec![path], not_kept: 0 });
    recording.traces[0].ledger.rows[0].via = vec!["journal".to_owned()];
    recording.traces[0].refused = vec![Refused::default()];
    let of_runs = &mut recording.statistics[0];
    of_runs.trend = Some(Trend { slope_ns_per_run: 1.0, change: 0.1, p: 0.0 });
    of_runs.change_point = Some(ChangePoint { run: 1, before_ns: Nanos(1), after_ns: Nanos(2), p: 0.0 });
    of_runs.modes = Some(Modes { low_ns: Nanos(1), high_ns: Nanos(2), high_runs: 1, separation: 9.0 });
    of_runs.calls = vec![CallSpread { name: "read".to_owned(), wall: of_runs.wall.clone() }];
    let part = Part { left_out: vec!["rmz: not here".to_owned()], ..Part::default() };
    recording.study = Some(Study { parts: vec![part], expectations: vec![Expectation::default()], ..Study::default() });
    recording.tuning = sample::tuned_recording().tuning;
    let row = &mut recording.ledger_differences[0].rows[0];
    (row.low_ns, row.high_ns) = (Some(1), Some(2));
    recording
}

fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                if !MAPS.contains(&key.as_str()) {
                    keys(value, into);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

/// The text of a page of the project.
fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_cause_and_finding_has_its_page() {
    let list = page("docs/causes/README.md");
    for cause in Cause::ALL {
        assert!(page(&format!("docs/causes/{cause}.md")).starts_with(&format!("# {cause}\n")), "{cause}");
        assert!(list.contains(&format!("[{cause}]({cause}.md)")), "{cause} is not in the list");
    }
    let list = page("docs/findings/README.md");
    for id in inodyne_analyse::finding_ids() {
        assert!(page(&format!("docs/findings/{id}.md")).starts_with(&format!("# {id}\n")), "{id}");
        assert!(list.contains(&format!("[{id}]({id}.md)")), "{id} is not in the list");
    }
}

#[test]
fn format_md_names_every_key() {
    let page = page("FORMAT.md");
    let mut all = BTreeSet::new();
    keys(&serde_json::to_value(full()).unwrap(), &mut all);
    let missing: Vec<_> = all.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "not in FORMAT.md: {missing:?}");
}

#[test]
fn the_recording_compared_leaves_nothing_out() {
    let mut all = BTreeSet::new();
    keys(&serde_json::to_value(full()).unwrap(), &mut all);
    for optional in [
        "address",
        "alive",
        "args_truncated",
        "avoidable_calls",
        "cause",
        "change_point",
        "code",
        "cures",
        "data",
        "device_read_bytes",
        "device_write_bytes",
        "durable",
        "durable_ns",
        "estimated",
        "modes",
        "proved",
        "ratio_of_means",
        "ratio_of_medians",
        "refused",
        "signal",
        "size_bytes",
        "stack",
        "study",
        "syscall",
        "trend",
        "truncated",
        "tuning",
        "via",
    ] {
        assert!(all.contains(optional), "{optional} is not in the recording that FORMAT.md is compared with");
    }
}
