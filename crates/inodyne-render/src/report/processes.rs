//! The processes, if there is more than one, as a tree: what each ran, how long the end of the command waited for it,
//! and how it ended if it did not succeed.

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
use crate::units::{counted, unit};

pub(super) const SECTION: Definition = Definition { name: "processes", unasked: true, show: Show::Case(show), records };

/// Processes that have a row, in addition to those above them.
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
    ];
    let failed = |process: &Process| process.exit.filter(|exit| !exit.success());
    let exit = all.iter().any(|process| failed(process).is_some()).then(|| Column::text("exit"));
    let has_exit = exit.is_some();
    let columns = columns.into_iter().chain(exit).chain([Column::text("command").yielding().naming()]);
    let times = |times: [Nanos; 3]| {
        let known = times.into_iter().zip(is_known);
        known.map(move |(ns, is_known)| if is_known { Cell::scaled(ns, longest) } else { Cell::nothing() })
    };
    let shown = shown(processes);
    let mut table = Table::new("processes", columns);
    for (at, process) in all.iter().enumerate() {
        let kind = if shown.contains(&at) { RowKind::Plain } else { RowKind::Hidden };
        let name = format!("{}{}", INDENT.repeat(process.depth.min(DEEPEST)), process.name);
        let numbers = [Cell::scaled(process.born_ns, longest), Cell::of(process.pid)];
        let exit = failed(process).map_or_else(Cell::nothing, |exit| Cell::of(exit.to_string()));
        let others = numbers.into_iter().chain(has_exit.then_some(exit)).chain([Cell::of(name)]);
        table.push(kind, times([process.path_ns, process.cpu_ns, process.life_ns()]).chain(others));
    }
    let rest: Vec<&Process> = (0..all.len()).filter(|at| !shown.contains(at)).map(|at| &all[at]).collect();
    if !rest.is_empty() {
        let others = counted(rest.len() as u64, "other", "others");
        table.hidden.clone_from(&others);
        let sum = |time: fn(&Process) -> Nanos| rest.iter().map(|process| time(process)).sum::<Nanos>();
        let sums = [sum(|one| one.path_ns), sum(|one| one.cpu_ns), sum(Process::life_ns)];
        let blank = std::iter::repeat_with(Cell::nothing).take(if has_exit { 3 } else { 2 });
        let words = blank.chain([Cell::of(others).styled(Style::Dim)]);
        table.push(RowKind::Rest, times(sums).chain(words));
    }
    table
}

/// Those through which the path ran longest, or that used the most CPU, with all above them.
fn shown(processes: &Processes) -> BTreeSet<usize> {
    let mut largest: Vec<usize> = (0..processes.all.len()).collect();
    largest.sort_by_key(|at| (Reverse(processes.all[*at].path_ns), Reverse(processes.all[*at].cpu_ns), *at));
    let with_those_above = |at: &usize| std::iter::once(*at).chain(processes.above(*at)).collect::<Vec<_>>();
    largest.iter().take(MOST_ROWS).flat_map(with_those_above).collect()
}

/// A row for each process, each after its parent.
fn records(recording: &Recording) -> Records {
    let columns =
        ["pid", "parent_pid", "process", "threads", "began_ns", "ended_ns", "lifetime_ns", "cpu_ns", "path_ns", "exit"];
    Records::of_traces(recording, columns, |trace| {
        let processes = Processes::new(trace);
        let row = |process: &Process| {
            let parent = process.parent.map_or(Value::Nothing, |parent| processes.all[parent].pid.into());
            let [began, ended] = [process.born_ns, process.ended_ns].map(Value::from);
            let [life, cpu, path] = [process.life_ns(), process.cpu_ns, process.path_ns].map(Value::from);
            let cpu = if trace.tracer.divides_calls() { cpu } else { Value::Nothing };
            let path = if trace.path.steps.is_empty() { Value::Nothing } else { path };
            let (name, threads) = ((&process.name).into(), process.threads.len().into());
            let exit = process.exit.map(|exit| exit.to_string());
            [process.pid.into(), parent, name, threads, began, ended, life, cpu, path, exit.as_ref().into()]
        };
        processes.all.iter().map(row).collect()
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::observed::ThreadObserved;
    use inodyne_model::run::Exit;
    use inodyne_model::sample;

    use super::*;

    /// The column headings and the rows for a shell that started another process, which ended like this.
    fn told(exit: Exit) -> (Vec<String>, Vec<Vec<String>>) {
        let mut trace = sample::find_recording().traces.swap_remove(0);
        let first = ThreadObserved { process_exit: Some(Exit::Code(0)), ..trace.observed.threads[0].clone() };
        let (number, parent) = (first.number + 1, first.number);
        let second = ThreadObserved { number, parent, pid: 77, tid: 77, process_exit: Some(exit), ..first.clone() };
        trace.observed.threads = vec![first, second];
        let table = table(&trace, &Processes::new(&trace));
        let heads = table.columns.iter().map(|column| column.heading.written(80)).collect();
        (heads, table.rows.iter().map(|row| row.cells.iter().map(Cell::written).collect()).collect())
    }

    #[test]
    fn how_a_process_ended_is_told_where_one_failed() {
        let (heads, rows) = told(Exit::Signal(9));
        assert_eq!(heads[5], "exit");
        assert_eq!([&rows[0][5], &rows[1][5]], ["", "SIGKILL"]);
        assert!(rows.iter().all(|row| row.len() == heads.len()), "{rows:?}");
        let (heads, rows) = told(Exit::Code(0));
        assert!(!heads.contains(&"exit".to_owned()));
        assert!(rows.iter().all(|row| row.len() == heads.len()), "{rows:?}");
    }
}
