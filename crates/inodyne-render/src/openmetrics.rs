//! Counters for a monitoring system, in the text format that Prometheus and node_exporter's textfile collector read
//! (prometheus.io/docs/instrumenting/exposition_formats).
//!
//! They count what was seen in windows, and say how long these were: a rate is a counter's increase divided by that of
//! `inodyne_window_seconds_total`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use inodyne_model::ledger::RowKind;
use inodyne_model::recording::Recording;

/// Names of labels with their values.
type Labels = Vec<(&'static str, String)>;

/// The sum of all windows so far.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By metric, then by labels.
    values: BTreeMap<usize, BTreeMap<Labels, f64>>,
}

/// A metric's name, type and meaning, in the order in which they are printed.
const METRICS: [(&str, &str, &str); 9] = [
    ("inodyne_windows_total", "counter", "Windows in which the target was watched."),
    ("inodyne_window_seconds_total", "counter", "Time in these windows."),
    (
        "inodyne_thread_seconds_total",
        "counter",
        "Time of all threads in these windows, by what they did and what they waited for.",
    ),
    ("inodyne_calls_total", "counter", "System calls in these windows."),
    ("inodyne_call_seconds_total", "counter", "Time in system calls in these windows, waits included."),
    ("inodyne_call_errors_total", "counter", "System calls in these windows that failed, by error."),
    ("inodyne_events_lost_total", "counter", "Events that were lost in these windows."),
    ("inodyne_finding", "gauge", "1 for each finding of the last window."),
    ("inodyne_last_window_timestamp_seconds", "gauge", "When the last window was recorded."),
];
const WINDOWS: usize = 0;
const WINDOW_SECONDS: usize = 1;
const THREAD_SECONDS: usize = 2;
const CALLS: usize = 3;
const CALL_SECONDS: usize = 4;
const CALL_ERRORS: usize = 5;
const LOST: usize = 6;
const FINDING: usize = 7;
const LAST: usize = 8;

impl Metrics {
    /// Adds a window.
    pub fn add(&mut self, recording: &Recording) {
        let Some(trace) = recording.traces.first() else { return };
        let target = recording.commands.first().map(|command| command.label.clone()).unwrap_or_default();
        let labels = |more: &[(&'static str, String)]| [&[("target", target.clone())], more].concat();
        self.count(WINDOWS, labels(&[]), 1.0);
        self.count(WINDOW_SECONDS, labels(&[]), trace.wall_ns.as_secs_f64());
        for row in &trace.ledger.rows {
            let cause = row.cause.map_or("", |cause| cause.as_str());
            let labels = labels(&[("state", state(row.kind).to_owned()), ("cause", cause.to_owned())]);
            self.count(THREAD_SECONDS, labels, row.ns.as_secs_f64());
        }
        for call in &trace.syscalls {
            let of_call = labels(&[("call", call.name.clone())]);
            self.count(CALLS, of_call.clone(), call.calls as f64);
            self.count(CALL_SECONDS, of_call, call.wall_ns.as_secs_f64());
            for (error, count) in &call.errors_by_errno {
                self.count(
                    CALL_ERRORS,
                    labels(&[("call", call.name.clone()), ("error", error.clone())]),
                    *count as f64,
                );
            }
        }
        self.count(LOST, labels(&[]), trace.lost.total() as f64);
        self.values.remove(&FINDING);
        for finding in &recording.findings {
            self.set(FINDING, labels(&[("finding", finding.id.clone())]), 1.0);
        }
        self.set(LAST, labels(&[]), recording.created_unix_s as f64);
    }

    fn count(&mut self, metric: usize, labels: Labels, value: f64) {
        *self.values.entry(metric).or_default().entry(labels).or_default() += value;
    }

    fn set(&mut self, metric: usize, labels: Labels, value: f64) {
        self.values.entry(metric).or_default().insert(labels, value);
    }
}

/// The word for what a thread did.
fn state(kind: RowKind) -> &'static str {
    match kind {
        RowKind::User => "user",
        RowKind::Kernel => "kernel",
        RowKind::Runqueue => "ready",
        RowKind::Blocked => "blocked",
        RowKind::InCall => "in-call",
        RowKind::OutsideCalls => "outside-calls",
        RowKind::Unexplained => "unexplained",
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (metric, values) in &self.values {
            let (name, kind, help) = METRICS[*metric];
            writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
            for (labels, value) in values {
                f.write_str(name)?;
                for (at, (label, value)) in labels.iter().enumerate() {
                    write!(f, "{}{label}=\"", if at == 0 { '{' } else { ',' })?;
                    value.chars().try_for_each(|character| match character {
                        '\\' => f.write_str("\\\\"),
                        '"' => f.write_str("\\\""),
                        '\n' => f.write_str("\\n"),
                        other => f.write_char(other),
                    })?;
                    f.write_char('"')?;
                }
                writeln!(f, "}} {value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::Nanos;
    use inodyne_model::command::CommandSpec;
    use inodyne_model::ledger::Row;
    use inodyne_model::sample;
    use inodyne_model::syscall::SyscallStats;
    use inodyne_model::trace::Trace;

    use super::*;

    #[test]
    fn windows_add_up_and_labels_are_escaped() {
        let mut recording = sample::empty();
        recording.commands = vec![CommandSpec { label: "cgroup a\"b\\c".to_owned(), ..CommandSpec::default() }];
        let mut call = SyscallStats::new("openat".to_owned());
        (call.calls, call.errors, call.wall_ns) = (3, 1, Nanos(2_000_000_000));
        call.errors_by_errno.insert("ENOENT".to_owned(), 1);
        let mut trace = Trace { wall_ns: Nanos(5_000_000_000), syscalls: vec![call], ..Trace::default() };
        trace.ledger.rows = vec![Row::new(RowKind::User, Nanos(500_000_000))];
        recording.traces = vec![trace];
        let mut metrics = Metrics::default();
        metrics.add(&recording);
        metrics.add(&recording);
        let text = metrics.to_string();
        let target = r#"target="cgroup a\"b\\c""#;
        for line in [
            format!("inodyne_windows_total{{{target}}} 2"),
            format!("inodyne_window_seconds_total{{{target}}} 10"),
            format!(r#"inodyne_thread_seconds_total{{{target},state="user",cause=""}} 1"#),
            format!(r#"inodyne_calls_total{{{target},call="openat"}} 6"#),
            format!(r#"inodyne_call_errors_total{{{target},call="openat",error="ENOENT"}} 2"#),
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("# TYPE").count(), 8, "{text}");
    }
}
