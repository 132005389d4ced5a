//! The functions in which the time went, in the kernel and in the program, on a CPU and waiting: of the critical path if it is known,
//! whoever ran them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::path::PathWait;
use inodyne_model::recording::Recording;
use inodyne_model::stack::{Stack, StackId};
use inodyne_model::trace::Trace;

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::rows::word;
use super::stack_frames::{Spent, of_kernel, of_program, spent};
use super::table::{self, Column, Records, Table};
use super::value::Cell;
use crate::units::{counted, unit};

pub(super) const SECTION: Definition = Definition { name: "functions", unasked: true, show: Show::Case(show), records };

/// Functions that have a row of their own.
const MOST_ROWS: usize = 12;
/// The share of the time that a function must have to be shown.
const SMALL: f64 = 0.005;

/// A function and whether it is the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Function {
    name: String,
    in_kernel: bool,
}

/// The time of a function.
#[derive(Debug, Clone, Default)]
struct Sum {
    /// On a CPU, in the function itself.
    self_cpu: Nanos,
    /// Waiting, in the function itself.
    self_waiting: Nanos,
    /// On a CPU, including what it called.
    cpu: Nanos,
    /// Waiting, including what it called, and what others did in the meantime.
    waiting: Nanos,
    /// Whose time it mostly was.
    whose: BTreeMap<String, Nanos>,
}

impl Sum {
    fn own(&self) -> Nanos {
        self.self_cpu + self.self_waiting
    }

    fn total(&self) -> Nanos {
        self.cpu + self.waiting
    }

    fn mostly(&self) -> &str {
        self.whose.iter().max_by_key(|(_, ns)| **ns).map_or("", |(name, _)| name)
    }
}

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    let functions = ranked(trace);
    if functions.is_empty() {
        return;
    }
    let of = if trace.path.stacks.is_empty() { "" } else { " on the critical path" };
    page.heading(&format!("Functions{of}: {}", Grouped(functions.len() as u64)));
    page.table(table(&functions, trace.ledger.wall_ns));
}

fn table(functions: &[(Function, Sum)], whole: Nanos) -> Table {
    let number = |heading: &str| Column::number(heading).sorting();
    let time = |of: &str| number(&format!("{of} {}", unit(whole)));
    let columns = [
        time("self"),
        number("share"),
        time("ran").key("self_cpu_ns"),
        time("waited").key("self_waiting_ns"),
        time("total"),
        Column::text("in").sorting(),
        Column::text("mostly of").sorting().wide(),
        Column::text("function").key("function").sorting().naming().yielding(),
    ];
    let mut table = Table::new("functions", columns);
    for (at, (function, sum)) in functions.iter().enumerate() {
        let is_large = at < MOST_ROWS && sum.own().share_of(whole) >= SMALL;
        let kind = if is_large { table::RowKind::Plain } else { table::RowKind::Hidden };
        table.push(
            kind,
            [
                Cell::scaled(sum.own(), whole),
                Cell::share(sum.own().share_of(whole)),
                Cell::scaled(sum.self_cpu, whole).short_if_zero(),
                Cell::scaled(sum.self_waiting, whole).short_if_zero(),
                Cell::scaled(sum.total(), whole),
                Cell::of(if function.in_kernel { "kernel" } else { "program" }),
                Cell::of(sum.mostly()),
                Cell::of(&function.name),
            ],
        );
    }
    table.hidden = counted(table.hidden_rows() as u64, "more function", "more functions");
    table
}

/// All functions, those with the most time of their own first.
fn ranked(trace: &Trace) -> Vec<(Function, Sum)> {
    let mut found = Found::new(trace);
    for one in spent(trace) {
        found.add(&one);
    }
    let mut all: Vec<(Function, Sum)> = found.all.into_iter().zip(found.sums).collect();
    all.retain(|(_, sum)| sum.total() > Nanos::ZERO);
    all.sort_by_key(|(function, sum)| (Reverse(sum.own()), Reverse(sum.total()), function.clone()));
    all
}

/// Functions by number, and their time so far.
struct Found<'a> {
    stacks: HashMap<StackId, &'a Stack>,
    names: HashMap<ThreadNumber, &'a str>,
    numbers: HashMap<Function, usize>,
    all: Vec<Function>,
    sums: Vec<Sum>,
    /// The functions of the stacks seen so far, leaf first, by stack and whether it waited.
    met: HashMap<(StackId, bool), Vec<usize>>,
}

impl<'a> Found<'a> {
    fn new(trace: &'a Trace) -> Found<'a> {
        Found {
            stacks: trace.observed.stacks.iter().map(|stack| (stack.id, stack)).collect(),
            names: trace.threads.iter().map(|thread| (thread.number, thread.comm.as_str())).collect(),
            numbers: HashMap::new(),
            all: Vec::new(),
            sums: Vec::new(),
            met: HashMap::new(),
        }
    }

    fn add(&mut self, Spent { time, waits }: &Spent<'a>) {
        let is_blocked = time.kind == RowKind::Blocked;
        let runs = matches!(time.kind, RowKind::User | RowKind::Kernel);
        let helper = waits.last().map(|wait| wait.helper.as_str());
        let whose = helper.or_else(|| self.names.get(&time.thread).copied()).unwrap_or_default().to_owned();
        let in_kernel = self.kernel(time.stack, is_blocked);
        let in_program = self.program(time.user_stack);
        // A thread that waits in the kernel, or works there for a program, has no time of its own in user mode.
        let innermost = match time.kind {
            RowKind::User if helper.is_none() => in_program.first(),
            RowKind::Kernel | RowKind::Blocked => in_kernel.first(),
            _ => None,
        };
        if let Some(sum) = innermost.and_then(|number| self.sums.get_mut(*number)) {
            *(if is_blocked { &mut sum.self_waiting } else { &mut sum.self_cpu }) += time.ns;
            *sum.whose.entry(whose).or_default() += time.ns;
        }
        let mut around = self.around(time.user_stack, waits);
        around.retain(|number| !in_kernel.contains(number));
        self.total(in_kernel, runs, time.ns);
        // While a helper runs, the threads that wait for it do not.
        self.total(around, runs && helper.is_none(), time.ns);
    }

    /// The functions around a time: the program's, and those of waits for helpers.
    fn around(&mut self, user_stack: StackId, waits: &[PathWait]) -> Vec<usize> {
        let mut all: Vec<usize> = waits.iter().flat_map(|wait| self.kernel(wait.stack, true)).collect();
        all.extend(self.program(user_stack));
        all
    }

    /// A function that is in a stack twice gets the time once.
    fn total(&mut self, mut functions: Vec<usize>, runs: bool, ns: Nanos) {
        functions.sort_unstable();
        functions.dedup();
        for number in functions {
            let sum = &mut self.sums[number];
            *(if runs { &mut sum.cpu } else { &mut sum.waiting }) += ns;
        }
    }

    fn kernel(&mut self, id: StackId, is_blocked: bool) -> Vec<usize> {
        self.functions(id, is_blocked, true)
    }

    fn program(&mut self, id: StackId) -> Vec<usize> {
        self.functions(id, false, false)
    }

    fn functions(&mut self, id: StackId, is_blocked: bool, in_kernel: bool) -> Vec<usize> {
        if let Some(met) = self.met.get(&(id, is_blocked)) {
            return met.clone();
        }
        let Some(stack) = self.stacks.get(&id).copied() else { return Vec::new() };
        let names: Vec<String> =
            if in_kernel { of_kernel(stack, is_blocked).collect() } else { of_program(stack).collect() };
        let numbers: Vec<usize> = names.into_iter().map(|name| self.number(Function { name, in_kernel })).collect();
        self.met.insert((id, is_blocked), numbers.clone());
        numbers
    }

    fn number(&mut self, function: Function) -> usize {
        if let Some(number) = self.numbers.get(&function) {
            return *number;
        }
        self.all.push(function.clone());
        self.sums.push(Sum::default());
        self.numbers.insert(function, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// A row for each function of a trace, those with the most time of their own first.
fn records(recording: &Recording) -> Records {
    let columns = [
        "view",
        "wall_ns",
        "function",
        "in_kernel",
        "mostly_of",
        "self_cpu_ns",
        "self_waiting_ns",
        "total_cpu_ns",
        "total_waiting_ns",
    ];
    Records::of_traces(recording, columns, |trace| {
        let of_function = |(function, sum): (Function, Sum)| {
            let mostly = sum.mostly().to_owned();
            let times = [sum.self_cpu, sum.self_waiting, sum.cpu, sum.waiting];
            let [self_cpu, self_waiting, cpu, waiting] = times.map(Into::into);
            let (view, wall) = (word(trace.ledger.view), trace.ledger.wall_ns.into());
            let (name, in_kernel) = (function.name.into(), function.in_kernel.into());
            [view, wall, name, in_kernel, mostly.into(), self_cpu, self_waiting, cpu, waiting]
        };
        ranked(trace).into_iter().map(of_function).collect()
    })
}
