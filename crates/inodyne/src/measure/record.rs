//! From an execution to the recording.

use inodyne_lab::DeviceStats;
use inodyne_model::Nanos;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::{Command, Run, median};
use inodyne_model::trace::{Overhead, Trace};
use inodyne_trace::Collected;

use super::Called;
use super::execute::Execution;
use super::schedule::Which;
use super::setting::Setting;

/// The places, under names that tell them apart.
pub fn places(settings: &[Option<Setting>]) -> Vec<Place> {
    let mut places: Vec<Place> = settings.iter().flatten().map(Setting::place).collect();
    let labels = apart(places.iter().map(|place| place.label.clone()).collect());
    places.iter_mut().zip(labels).for_each(|(place, label)| place.label = label);
    places
}

/// The commands as reports name them, told apart as well.
pub fn commands(called: &[Called]) -> Vec<Command> {
    let mut commands: Vec<Command> = called.iter().map(command).collect();
    let labels = apart(commands.iter().map(|command| command.label.clone()).collect());
    commands.iter_mut().zip(labels).for_each(|(command, label)| command.label = label);
    commands
}

/// Numbers the labels that are like one before, unless the user has called another so.
fn apart(given: Vec<String>) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (at, label) in given.iter().enumerate() {
        let is_free = |numbered: &String| !given.contains(numbered) && !labels.contains(numbered);
        let numbered = || (2..).map(|number| format!("{label} #{number}")).find(is_free).unwrap_or_default();
        let own = if given[..at].contains(label) { numbered() } else { label.clone() };
        labels.push(own);
    }
    labels
}

fn command(called: &Called) -> Command {
    let argv: Vec<String> = called.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let label = match &argv[..] {
        _ if called.label.is_some() => called.label.clone().unwrap_or_default(),
        // What the user wrote, not how it is run.
        [shell, option, script] if shell == "/bin/sh" && option == "-c" => script.clone(),
        _ => argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    };
    Command { label, argv }
}

/// As a shell would need it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Adds a run and, where it was traced, its trace.
pub fn add(recording: &mut Recording, which: Which, execution: Execution, moved: Option<DeviceStats>) {
    let ended = execution.ended;
    let (wall_ns, durable_ns) = (execution.wall_ns(), execution.durable_ns());
    recording.push_run(Run {
        place: which.place,
        command: which.command,
        cache: which.cache,
        block: which.block,
        traced: execution.collected.is_some(),
        wall_ns: ended.wall_ns(),
        durable_ns,
        user_ns: ended.user_ns,
        sys_ns: ended.sys_ns,
        voluntary_switches: ended.voluntary_switches,
        involuntary_switches: ended.involuntary_switches,
        major_faults: ended.major_faults,
        minor_faults: ended.minor_faults,
        max_rss_bytes: ended.max_rss_bytes,
        device_read_bytes: moved.map(|m| m.read_bytes),
        device_write_bytes: moved.map(|m| m.write_bytes),
        exit: ended.exit,
    });
    if let Some(collected) = execution.collected {
        let overhead = overhead(recording, which, &collected, wall_ns);
        recording.traces.push(Trace {
            place: which.place,
            command: which.command,
            cache: which.cache,
            wall_ns,
            by_comm: collected.by_comm,
            dtype: collected.dtype,
            paths: collected.paths,
            overhead,
            lost: collected.lost,
            observed: collected.observed,
            ..Trace::default()
        });
    }
}

/// Measured against the median of the untraced runs of the same kind where there are any; otherwise the number of calls
/// times the measured cost of one, spread over as many CPUs as were busy.
fn overhead(recording: &Recording, which: Which, collected: &Collected, wall_ns: Nanos) -> Overhead {
    let alike =
        |run: &&Run| (run.place, run.command, run.cache) == (which.place, which.command, which.cache) && !run.traced;
    let mut untraced: Vec<Nanos> = recording.runs.iter().filter(alike).map(|run| run.wall_ns).collect();
    untraced.sort_unstable();
    let wall = wall_ns.as_secs_f64();
    let (ratio, estimated) = match median(&untraced) {
        Some(median) => (wall / median.as_secs_f64(), false),
        None => {
            let calls: u64 = collected.by_comm.iter().flat_map(|c| &c.syscalls).map(|s| s.calls).sum();
            let cpu: Nanos = collected.observed.threads.iter().map(|thread| thread.cpu_ns()).sum();
            let busy_cpus = (cpu.as_secs_f64() / wall).max(1.0);
            let cost = calls as f64 * collected.overhead.ns_per_call / 1e9 / busy_cpus;
            (wall / (wall - cost).max(wall / 100.0), true)
        }
    };
    Overhead { ratio, estimated, ..collected.overhead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_one_name_is_told_apart() {
        let labels = |given: &[&str]| apart(given.iter().map(|label| (*label).to_owned()).collect());
        assert_eq!(labels(&["x", "y", "x", "x"]), ["x", "y", "x #2", "x #3"]);
        assert_eq!(labels(&["x", "x", "x #2", "x"]), ["x", "x #3", "x #2", "x #4"]);
    }
}
