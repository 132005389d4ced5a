//! The processes, where there is more than one, as a tree: what each ran, and how long the end of the command waited for it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::table::{Column, Records, RowKind, Table};
use super::value::{Cell, Value};
use crate::line::Style;
use crate::process::{Process, Processes};
use crate::units::unit;

pub(super) const SECTION: Definition = Definition { name: "processes", unasked: true, show: Show::Case(show), records };

/// Processes that have a row, besides those above them.
const MOST_ROWS: usize = 12;
/// A tree that is deeper is not indented further.
const DEEPEST: usize = 8;
/// Pages drop spaces at the beginning of a cell, but not these.
const INDENT: &str = "\u{a0}\u{a0}";

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    let processes = Processes::new(trace);
    if processes.all.len() < 2 {
        return;
    }
    page.heading(&format!("Processes: {}", Grouped(processes.all.len() as u64)));
    page.table(table(trace, &processes));
}

fn table(trace: &Trace, processes: &Processes) -> Table {
    let all = &processes.all;
    let longest = all.iter().map(Process::life_ns).max().unwrap_or_default();
    let is_known = [!trace.path.steps.is_empty(), trace.tracer.divides_calls(), true];
    let number = |heading: &str| Column::number(&format!("{heading} {}", unit(longest))).sorting();
    let columns = [
        number("on the path").key("path_ns"),
        number("CPU").key("cpu_ns"),
        number("life").key("lifetime_ns"),
        number("begins").key("began_ns").wide(),
        Column::number("pid").sorting().key("pid"),
        Column::text("command").yielding().naming(),
    ];
    let times = |times: [Nanos; 3]| {
        let known = times.into_iter().zip(is_known);
        known.map(move |(ns, is_known)| if is_known { Cell::scaled(ns, longest) } else { Cell::nothing() })
    };
    let shown = shown(processes);
    let mut table = Table::new("processes", columns);
    for (at, process) in all.iter().enumerate() {
        let kind = if shown.contains(&at) { RowKind::Plain } else { RowKind::Hidden };
        let name = format!("{}{}", INDENT.repeat(process.depth.min(DEEPEST)), process.name);
        let others = [Cell::scaled(process.born_ns, longest), Cell::of(process.pid), Cell::of(name)];
        table.push(kind, times([process.path_ns, process.cpu_ns, process.life_ns()]).chain(others));
    }
    let rest: Vec<&Process> = (0..all.len()).filter(|at| !shown.contains(at)).map(|at| &all[at]).collect();
    if !rest.is_empty() {
        let others = format!("{} others", Grouped(rest.len() as u64));
        table.hidden.clone_from(&others);
        let sum = |time: fn(&Process) -> Nanos| rest.iter().map(|process| time(process)).sum::<Nanos>();
        let sums = [sum(|one| one.path_ns), sum(|one| one.cpu_ns), sum(Process::life_ns)];
        let words = [Cell::nothing(), Cell::nothing(), Cell::of(others).styled(Style::Dim)];
        table.push(RowKind::Rest, times(sums).chain(words));
    }
    table
}

/// Those through which the path ran longest, or that used most CPU, with all above them.
fn shown(processes: &Processes) -> BTreeSet<usize> {
    let mut largest: Vec<usize> = (0..processes.all.len()).collect();
    largest.sort_by_key(|at| (Reverse(processes.all[*at].path_ns), Reverse(processes.all[*at].cpu_ns), *at));
    let with_those_above = |at: &usize| std::iter::once(*at).chain(processes.above(*at)).collect::<Vec<_>>();
    largest.iter().take(MOST_ROWS).flat_map(with_those_above).collect()
}

/// A row for each process, each after its parent.
fn records(recording: &Recording) -> Records {
    let columns =
        ["pid", "parent_pid", "process", "threads", "began_ns", "ended_ns", "lifetime_ns", "cpu_ns", "path_ns"];
    Records::of_traces(recording, columns, |trace| {
        let processes = Processes::new(trace);
        let row = |process: &Process| {
            let parent = process.parent.map_or(Value::Nothing, |parent| processes.all[parent].pid.into());
            let [began, ended] = [process.born_ns, process.ended_ns].map(Value::from);
            let [life, cpu, path] = [process.life_ns(), process.cpu_ns, process.path_ns].map(Value::from);
            let (name, threads) = ((&process.name).into(), process.threads.len().into());
            [process.pid.into(), parent, name, threads, began, ended, life, cpu, path]
        };
        processes.all.iter().map(row).collect()
    })
}
