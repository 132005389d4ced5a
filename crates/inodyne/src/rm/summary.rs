//! The summary at the end: for a dry run, for `--json`, and for a delete that was stopped.

use std::{ffi::OsString, time::Duration};

use inodyne_tree::{Control, FileSystem, RemoveReport, Strategy};
use serde_json::json;

use super::{messages::Messages, options::Options};

/// What happened to all operands together.
#[derive(Default)]
pub struct Summary {
    pub files: u64,
    pub directories: u64,
    failures: u64,
    allocated_bytes: u64,
    pub unfinished: Vec<OsString>,
    plans: Vec<(FileSystem, Strategy, usize)>,
    wall: Duration,
}

impl Summary {
    /// Adds what one delete reports that `Control` does not count.
    pub fn add(&mut self, report: RemoveReport) {
        self.unfinished.extend(report.unfinished);
        for plan in report.plans {
            if !self.plans.contains(&plan) {
                self.plans.push(plan);
            }
        }
    }

    /// Takes over what all deletes of this process counted.
    pub fn close(&mut self, control: &Control, failures: u64, wall: Duration) {
        self.files += control.files();
        self.directories += control.directories();
        self.failures = failures;
        self.allocated_bytes = control.allocated_bytes();
        self.wall = wall;
    }

    /// What a stop left, as one line.
    pub fn interruption(&self, messages: &Messages) -> String {
        let left: Vec<_> = self.unfinished.iter().map(|operand| messages.quote(operand)).collect();
        let left = if left.is_empty() { "nothing".into() } else { left.join(", ") };
        format!("interrupted: {} files and {} directories removed; left: {left}", self.files, self.directories)
    }

    /// Prints what the options ask for, which is usually nothing.
    pub fn print(&self, options: &Options, messages: &Messages) {
        let text = match (options.json, options.dry_run) {
            (true, _) => format!("{}\n", self.as_json(options)),
            (false, true) => self.dry_run_text(),
            (false, false) => return,
        };
        messages.print(&text);
    }

    fn dry_run_text(&self) -> String {
        let Self { files, directories, allocated_bytes, plans, .. } = self;
        let mut text =
            format!("would remove {files} files and {directories} directories, {allocated_bytes} bytes allocated\n");
        for (file_system, strategy, threads) in plans {
            text += &format!("on {file_system}: strategy {strategy}, up to {threads} threads\n");
        }
        text
    }

    fn as_json(&self, options: &Options) -> serde_json::Value {
        let plans = self.plans.iter().map(|(file_system, strategy, threads)| {
            json!({"fs": file_system.to_string(), "strategy": strategy.name(), "threads": threads})
        });
        let unfinished = self.unfinished.iter().map(|operand| operand.to_string_lossy());
        let mut value = json!({
            "files": self.files, "directories": self.directories, "failures": self.failures,
            "unfinished": unfinished.collect::<Vec<_>>(), "plans": plans.collect::<Vec<_>>(),
            "wall_ns": self.wall.as_nanos() as u64, "dry_run": options.dry_run,
        });
        if options.dry_run {
            value["allocated_bytes"] = self.allocated_bytes.into();
        }
        value
    }
}
