//! The critical path in the formats that other programs read: each is as wide as the wall-clock time, and says who was waited for.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use inodyne_model::trace::Trace;
use serde_json::Value;
use support::{inodyne, load, machine, run, scratch};

/// Parts of the wall-clock time by which the widths may differ from it.
const MOST_MISSING: f64 = 0.01;

/// Three at once that wait for the journal, so that the lives of all threads are far longer than the wall-clock time.
const SCRIPT: &str = "for i in 1 2 3; do dd if=/dev/zero of=$i bs=4k count=300 oflag=sync 2>/dev/null & done; wait";

/// A recording of the script, and what it says.
struct Recorded {
    directory: PathBuf,
    file: PathBuf,
    trace: Trace,
}

impl Recorded {
    fn new(directory: &Path) -> Recorded {
        let file = directory.join("sync.inodyne");
        let mut command = inodyne();
        command.args(["run", "--at", "ext4:size=1G", "-o"]).arg(&file).args(["--", "sh", "-c", SCRIPT]);
        run(&mut command).ended_with(0);
        let trace = load(&file).expect("a recording").traces.remove(0);
        Recorded { directory: directory.to_owned(), file, trace }
    }

    /// What is shown of it in this format, for this section.
    fn shown(&self, format: &str, section: &[&str]) -> Vec<u8> {
        let output = self.directory.join(format!("exported.{format}"));
        let mut command = inodyne();
        command.args(["show", "--format", format, "-o"]).arg(&output).args(section).arg(&self.file);
        run(&mut command).ended_with(0);
        fs::read(output).expect("what was shown")
    }

    fn text(&self, format: &str) -> String {
        String::from_utf8(self.shown(format, &[])).expect("text")
    }

    fn json(&self, format: &str) -> Value {
        serde_json::from_str(&self.text(format)).expect("JSON")
    }

    /// Insists that this is the wall-clock time.
    fn is_wall(&self, what: &str, ns: f64) {
        let wall = self.trace.wall_ns.0 as f64;
        println!("{what}: {:.3} ms of {:.3} ms", ns / 1e6, wall / 1e6);
        assert!((ns / wall - 1.0).abs() < MOST_MISSING, "{what}: {ns} of {wall}");
    }
}

#[test]
fn the_critical_path_is_as_wide_as_the_wall_clock_time_in_every_format() {
    let (_machine, scratch) = (machine(), scratch());
    let recorded = Recorded::new(scratch.path());
    let lives: u64 = recorded.trace.threads.iter().map(|thread| thread.lifetime_ns.0).sum();
    assert!(lives > recorded.trace.wall_ns.0 * 2, "all threads take longer than the wall-clock time");

    assert!(!recorded.trace.observed.helper_samples.is_empty(), "the journal's thread was seen at work");

    let folded = recorded.text("folded");
    recorded.is_wall("folded", lines(&folded).values().sum::<u64>() as f64);
    let waits_for_journal =
        |stack: &str| stack.contains(";[blocked: journal];jbd2;") && stack.ends_with(";[blocked: device-write]");
    assert!(lines(&folded).keys().any(|stack| stack.starts_with("dd;") && waits_for_journal(stack)), "{folded}");
    let all = String::from_utf8(recorded.shown("folded", &["--section", "wall"])).expect("text");
    assert_eq!(lines(&all).values().sum::<u64>(), lives, "all threads can be asked for");

    let svg = recorded.text("svg");
    let (_, total) = svg.split_once("total_samples=\"").expect("the width of the picture");
    recorded.is_wall("svg", total.split_once('"').expect("a number").0.parse().expect("nanoseconds"));

    let speedscope = recorded.json("speedscope");
    let first = &speedscope["profiles"][speedscope["activeProfileIndex"].as_u64().expect("an index") as usize];
    recorded
        .is_wall("speedscope", first["weights"].as_array().expect("weights").iter().filter_map(Value::as_f64).sum());

    let firefox = recorded.json("firefox");
    let threads = firefox["threads"].as_array().expect("threads");
    let track = |name: &str| threads.iter().find(|thread| thread["name"] == name).expect("a track");
    for name in ["critical path", "critical path, summed by stack"] {
        let weights = track(name)["samples"]["weight"].as_array().expect("weights").iter();
        recorded.is_wall(name, weights.filter_map(Value::as_f64).sum::<f64>() * 1e6);
    }
    let steps = track("critical path")["markers"]["length"].as_u64().expect("how many");
    assert!(steps > 100, "{steps} steps of the path");

    let html = recorded.text("html");
    let (_, flame) = html.split_once("data-kind=\"flame\">").expect("a flame graph");
    let flame: Value = serde_json::from_str(flame.split_once("</script>").expect("its end").0).expect("JSON");
    assert!(flame["trees"][0]["label"].as_str().is_some_and(|label| label.contains("critical path")));
    let ns = flame["trees"][0]["ns"].as_array().expect("columns");
    recorded.is_wall("html", ns.iter().filter_map(Value::as_f64).sum());
}

#[test]
fn pprof_reads_the_critical_path() {
    let (_machine, scratch) = (machine(), scratch());
    let recorded = Recorded::new(scratch.path());
    recorded.shown("pprof", &[]);
    let pprof = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(["tool", "pprof"]).args(arguments).arg(recorded.directory.join("exported.pprof"));
        run(command.env("PPROF_TMPDIR", &recorded.directory)).ended_with(0).text()
    };
    let top = pprof(&["-top", "-unit=nanoseconds"]);
    let (_, total) = top.split_once(" of ").expect("the whole");
    let total = total.split_once("ns total").unwrap_or_else(|| panic!("no total: {top}")).0;
    recorded.is_wall("pprof", total.parse().expect("nanoseconds"));
    let journal = pprof(&["-traces", "-focus=jbd2"]);
    assert!(journal.contains("[blocked: journal]") && journal.contains("dd"), "{journal}");
}

/// Folded stacks with their time.
fn lines(folded: &str) -> BTreeMap<&str, u64> {
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
    lines.map(|(stack, ns)| (stack, ns.parse().expect("nanoseconds"))).collect()
}
