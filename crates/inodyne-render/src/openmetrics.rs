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
    values: BTreeMap<Metric, BTreeMap<Labels, f64>>,
}

/// What is counted, in the order in which it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Metric {
    Windows,
    WindowSeconds,
    ThreadSeconds,
    Calls,
    CallSeconds,
    CallErrors,
    EventsLost,
    Finding,
    LastWindow,
}

impl Metric {
    /// Its name, its type and what it means.
    fn words(self) -> [&'static str; 3] {
        match self {
            Metric::Windows => ["inodyne_windows_total", "counter", "Windows in which the target was watched."],
            Metric::WindowSeconds => ["inodyne_window_seconds_total", "counter", "Time in these windows."],
            Metric::ThreadSeconds => [
                "inodyne_thread_seconds_total",
                "counter",
                "Time of all threads in these windows, by what they did and what they waited for.",
            ],
            Metric::Calls => ["inodyne_calls_total", "counter", "System calls in these windows."],
            Metric::CallSeconds => {
                ["inodyne_call_seconds_total", "counter", "Time in system calls in these windows, waits included."]
            }
            Metric::CallErrors => {
                ["inodyne_call_errors_total", "counter", "System calls in these windows that failed, by error."]
            }
            Metric::EventsLost => ["inodyne_events_lost_total", "counter", "Events that were lost in these windows."],
            Metric::Finding => ["inodyne_finding", "gauge", "1 for each finding of the last window."],
            Metric::LastWindow => {
                ["inodyne_last_window_timestamp_seconds", "gauge", "When the last window was recorded."]
            }
        }
    }
}

impl Metrics {
    /// Adds a window.
    pub fn add(&mut self, recording: &Recording) {
        let Some(trace) = recording.traces.first() else { return };
        let target = recording.commands.first().map(|command| command.label.clone()).unwrap_or_default();
        let labels = |more: &[(&'static str, String)]| [&[("target", target.clone())], more].concat();
        self.count(Metric::Windows, labels(&[]), 1.0);
        self.count(Metric::WindowSeconds, labels(&[]), trace.wall_ns.as_secs_f64());
        for row in &trace.ledger.rows {
            let cause = row.cause.map_or("", |cause| cause.as_str());
            let labels = labels(&[("state", state(row.kind).to_owned()), ("cause", cause.to_owned())]);
            self.count(Metric::ThreadSeconds, labels, row.ns.as_secs_f64());
        }
        for call in &trace.syscalls {
            let of_call = labels(&[("call", call.name.clone())]);
            self.count(Metric::Calls, of_call.clone(), call.calls as f64);
            self.count(Metric::CallSeconds, of_call, call.wall_ns.as_secs_f64());
            for (error, count) in &call.errors_by_errno {
                self.count(
                    Metric::CallErrors,
                    labels(&[("call", call.name.clone()), ("error", error.clone())]),
                    *count as f64,
                );
            }
        }
        self.count(Metric::EventsLost, labels(&[]), trace.lost.total() as f64);
        self.values.remove(&Metric::Finding);
        for finding in &recording.findings {
            self.set(Metric::Finding, labels(&[("finding", finding.id.clone())]), 1.0);
        }
        self.set(Metric::LastWindow, labels(&[]), recording.created_unix_s as f64);
    }

    fn count(&mut self, metric: Metric, labels: Labels, value: f64) {
        *self.values.entry(metric).or_default().entry(labels).or_default() += value;
    }

    fn set(&mut self, metric: Metric, labels: Labels, value: f64) {
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
            let [name, kind, help] = metric.words();
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
