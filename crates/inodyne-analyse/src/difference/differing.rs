//! What differs besides what was measured: whoever reads a difference has to know whether it is due to the program.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Display;

use inodyne_model::command::CommandSpec;
use inodyne_model::difference::{Differing, Sides};
use inodyne_model::observed::Begin;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::median;
use inodyne_model::trace::{Trace, Tracer};

use crate::comparison::cases::MeasuredCase;
use crate::units::seconds;

/// Windows that were meant to be of the same length are, to within this fraction of it.
const ALIKE: f64 = 0.02;

/// How the machines and the programs that made the recordings differ.
pub(super) fn machines(recordings: &Sides<&Recording>) -> Vec<Differing> {
    let mut differing = List::default();
    let hosts = recordings.map(|recording| &recording.host);
    differing.add("kernel", hosts.map(|host| host.kernel.clone()));
    differing.add("architecture", hosts.map(|host| host.arch.clone()));
    differing.add("CPUs", hosts.map(|host| host.cpus.to_string()));
    differing.add("CPU", hosts.map(|host| host.cpu_model.clone()));
    // How much the kernel keeps for itself varies from boot to boot.
    differing.add("memory", hosts.map(|host| format!("{:.1} GB", host.memory_bytes as f64 / 1e9)));
    differing.add("virtual machine", hosts.map(|host| if host.virtual_machine { "yes" } else { "no" }.to_owned()));
    differing.add("inodyne", recordings.map(|recording| recording.program_version.clone()));
    differing.0
}

/// What the place and the command were, and how the runs ended.
pub(super) fn cases(recordings: &Sides<&Recording>, cases: &Sides<&MeasuredCase<'_>>) -> Vec<Differing> {
    let mut differing = List::default();
    let commands = Sides {
        old: recordings.old.commands.get(cases.old.key.command),
        new: recordings.new.commands.get(cases.new.key.command),
    };
    if let (Some(old), Some(new)) = (commands.old, commands.new) {
        command(&mut differing, &Sides { old, new });
    }
    let places = Sides {
        old: recordings.old.places.get(cases.old.key.place),
        new: recordings.new.places.get(cases.new.key.place),
    };
    if let (Some(old), Some(new)) = (places.old, places.new) {
        place(&mut differing, &Sides { old, new });
    }
    differing.add("caches", cases.map(|case| case.key.cache.to_string()));
    differing.add("ended with", cases.map(ends));
    differing.add("traced by", cases.map(tracers));
    if let Some(windows) = windows(&cases.map(|case| case.traces())) {
        differing.add("window", windows);
    }
    differing.0
}

/// How long the windows of both sides are, where they differ in length; empty for a side that is the whole life of a command.
pub(super) fn windows(traces: &Sides<&[&Trace]>) -> Option<Sides<String>> {
    let length = |traces: &[&Trace]| {
        let windows = traces.iter().filter(|trace| trace.observed.window.begin == Begin::Attached);
        median(&windows.map(|trace| trace.wall_ns).collect::<Vec<_>>())
    };
    let lengths = traces.map(length);
    let alike = match (lengths.old, lengths.new) {
        (None, None) => true,
        (Some(old), Some(new)) => old.0.abs_diff(new.0) as f64 <= old.0 as f64 * ALIKE,
        _ => traces.old.is_empty() || traces.new.is_empty(),
    };
    (!alike).then(|| lengths.map(|length| length.map_or_else(String::new, |ns| seconds(ns.0 as f64))))
}

fn command(differing: &mut List, commands: &Sides<&CommandSpec>) {
    let optional = |of: fn(&CommandSpec) -> Option<String>| commands.map(|command| of(command).unwrap_or_default());
    differing.add("command", commands.map(|command| command.quoted()));
    differing.add("started in", optional(|command| Some(command.cwd.as_ref()?.display().to_string())));
    let variables = |command: &CommandSpec| {
        let one =
            |(name, value): (&OsString, &OsString)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy());
        command.env.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    differing.add("environment", commands.map(variables));
    differing.add("user", optional(|command| command.user.clone()));
    differing.add("prepared by", optional(|command| Some(command.prepare.as_ref()?.to_string_lossy().into_owned())));
    differing.add("cleaned up by", optional(|command| Some(command.cleanup.as_ref()?.to_string_lossy().into_owned())));
}

fn place(differing: &mut List, places: &Sides<&Place>) {
    differing.add("place", places.map(|place| place.name()));
    differing.add("made as", places.map(|place| place.spec.clone().unwrap_or_default()));
    differing.add("file system", places.map(|place| place.fs.clone()));
    differing.add("mount options", places.map(|place| place.mount_options.clone()));
    differing.add("data", places.map(|place| place.data.clone().unwrap_or_default()));
    // Data of the same description may still differ.
    let digests = places.map(|place| place.data_digest.as_ref());
    if let (Some(old), Some(new)) = (digests.old, digests.new) {
        differing.add("digest of the data", Sides { old: old.clone(), new: new.clone() });
    }
    let settings = |place: &Place| {
        let one = |(name, value): (&String, &String)| format!("{name}={value}");
        place.settings.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    differing.add("settings", places.map(settings));
}

/// The codes with which the runs ended, as a shell reports them.
fn ends(case: &MeasuredCase<'_>) -> String {
    let codes: BTreeSet<i32> = case.runs().map(|run| run.exit.shell_code()).collect();
    spaced(&codes.into_iter().collect::<Vec<_>>(), ", ")
}

fn tracers(case: &MeasuredCase<'_>) -> String {
    let word = |tracer: Tracer| match tracer {
        Tracer::Bpf => "BPF programs",
        Tracer::Strace => "strace",
    };
    let words: BTreeSet<&str> = case.traces().iter().map(|trace| word(trace.tracer)).collect();
    spaced(&words.into_iter().collect::<Vec<_>>(), ", ")
}

fn spaced(parts: &[impl Display], between: &str) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// What was found to differ.
#[derive(Default)]
struct List(Vec<Differing>);

impl List {
    fn add(&mut self, what: &'static str, sides: Sides<String>) {
        if sides.differ() {
            self.0.push(Differing { what, sides });
        }
    }
}
