//! The table: its columns, and its lines in their order. Pure.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use clap::ValueEnum;
use inodyne_model::Nanos;
use inodyne_model::activity::{Account, Activity, ProcessActivity};
use inodyne_model::count::Grouped;
use inodyne_render::escaped;

/// What a line stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum By {
    /// A process
    #[default]
    Process,
    /// A control group
    Cgroup,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Column {
    /// Process ID; for a control group, the number of processes
    Pid,
    /// Time that all threads spent waiting for files
    #[default]
    Files,
    /// What they waited for longest, of the waits for files
    Cause,
    /// The file system in which they waited longest
    Fs,
    /// Time on a CPU
    Cpu,
    /// System calls per second
    Calls,
    /// Threads
    Threads,
    /// Command name, or the control group's path
    Name,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The process's id; none for a control group.
    pub pid: Option<u32>,
    /// How many processes.
    pub processes: usize,
    /// What it is called, without anything that moves a cursor.
    pub name: String,
    /// What its threads did.
    pub account: Account,
}

impl Column {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Column; 8] = [
        Column::Pid,
        Column::Files,
        Column::Cause,
        Column::Fs,
        Column::Cpu,
        Column::Calls,
        Column::Threads,
        Column::Name,
    ];

    /// Its title.
    pub fn title(self, by: By) -> &'static str {
        match (self, by) {
            (Column::Pid, By::Process) => "PID",
            (Column::Pid, By::Cgroup) => "PROCS",
            (Column::Files, _) => "FILES%",
            (Column::Cause, _) => "CAUSE",
            (Column::Fs, _) => "FS",
            (Column::Cpu, _) => "CPU%",
            (Column::Calls, _) => "CALLS/S",
            (Column::Threads, _) => "THREADS",
            (Column::Name, By::Process) => "COMMAND",
            (Column::Name, By::Cgroup) => "CONTROL GROUP",
        }
    }

    /// How wide it is; the last one takes what is left.
    pub fn width(self) -> usize {
        match self {
            Column::Pid | Column::Files => 7,
            Column::Cpu => 5,
            Column::Threads => 8,
            Column::Cause => 14,
            Column::Fs => 8,
            Column::Calls => 9,
            Column::Name => 15,
        }
    }

    /// Whether it holds numbers, which are aligned to the right.
    pub fn is_number(self) -> bool {
        !matches!(self, Column::Cause | Column::Fs | Column::Name)
    }

    /// What it shows of a line, for a look of this length.
    pub fn cell(self, line: &Line, length: Nanos) -> String {
        let account = &line.account;
        match self {
            Column::Pid => line.pid.map_or_else(|| line.processes.to_string(), |pid| pid.to_string()),
            Column::Files => percent(account.files_ns(), length),
            Column::Cause => account.main_cause().map_or("-", |cause| cause.as_str()).to_owned(),
            Column::Fs => account.main_filesystem().unwrap_or("-").to_owned(),
            Column::Cpu => percent(account.cpu_ns(), length),
            Column::Calls => per_second(account.calls, length),
            Column::Threads => account.threads.to_string(),
            Column::Name => line.name.clone(),
        }
    }

    /// Which of two lines comes first: for numbers the larger, but for ids the smaller.
    fn order(self, one: &Line, other: &Line) -> Ordering {
        let by_number = |number: &dyn Fn(&Line) -> u64| number(other).cmp(&number(one));
        match self {
            Column::Pid => (one.pid, Reverse(one.processes)).cmp(&(other.pid, Reverse(other.processes))),
            Column::Files => by_number(&|line| line.account.files_ns().0),
            Column::Cause => {
                let cause = |line: &Line| line.account.main_cause();
                (cause(one).is_none(), cause(one)).cmp(&(cause(other).is_none(), cause(other)))
            }
            Column::Fs => {
                let name = |line: &Line| line.account.main_filesystem().map(str::to_owned);
                (name(one).is_none(), name(one)).cmp(&(name(other).is_none(), name(other)))
            }
            Column::Cpu => by_number(&|line| line.account.cpu_ns().0),
            Column::Calls => by_number(&|line| line.account.calls),
            Column::Threads => by_number(&|line| line.account.threads as u64),
            Column::Name => one.name.cmp(&other.name),
        }
    }
}

/// A part of a time in per cent, without the sign.
pub fn percent(ns: Nanos, length: Nanos) -> String {
    match ns.share_of(length) * 100.0 {
        percent if percent < 99.95 => format!("{percent:.1}"),
        percent => format!("{percent:.0}"),
    }
}

/// A count as a rate per second.
pub fn per_second(count: u64, length: Nanos) -> String {
    Grouped((count as f64 / length.as_secs_f64().max(1e-9)).round() as u64).to_string()
}

/// The lines of those that did more than wait for things other than files, and whose name, pid, file system or cause contains the word. `group` returns the
/// control group of a process.
pub fn lines(
    activity: &Activity,
    by: By,
    sort: Column,
    word: &str,
    group: &mut dyn FnMut(&ProcessActivity) -> String,
) -> Vec<Line> {
    let active = activity.processes.iter().filter(|process| process.account.is_active());
    let mut lines: Vec<Line> = match by {
        By::Process => active
            .map(|process| Line {
                pid: Some(process.number()),
                processes: 1,
                name: escaped(&process.comm),
                account: process.account.clone(),
            })
            .collect(),
        By::Cgroup => {
            let mut groups: BTreeMap<String, Line> = BTreeMap::new();
            for process in active {
                let name = escaped(&group(process));
                let new = || Line { pid: None, processes: 0, name: name.clone(), account: Account::default() };
                let line = groups.entry(name.clone()).or_insert_with(new);
                line.processes += 1;
                line.account.add(&process.account);
            }
            groups.into_values().collect()
        }
    };
    let has_word = |line: &Line| {
        let pid = line.pid.map(|pid| pid.to_string()).unwrap_or_default();
        let words =
            [line.name.as_str(), &pid, &Column::Cause.cell(line, Nanos::ZERO), &Column::Fs.cell(line, Nanos::ZERO)];
        words.iter().any(|own| own.to_lowercase().contains(&word.to_lowercase()))
    };
    lines.retain(|line| word.is_empty() || has_word(line));
    // Lines that compare equal keep their places from one look to the next.
    lines.sort_by(|one, other| {
        let then = || Column::Files.order(one, other).then_with(|| Column::Cpu.order(one, other));
        sort.order(one, other).then_with(then).then_with(|| (one.pid, &one.name).cmp(&(other.pid, &other.name)))
    });
    lines
}

/// Two processes that wait for files and one that only sleeps, for tests.
#[cfg(test)]
pub mod sample {
    use inodyne_model::cause::Cause;
    use inodyne_model::ledger::{Row, RowKind};
    use inodyne_model::sample::ms;

    use super::*;

    fn process(pid: u32, comm: &str, wait: (&str, Cause), blocked: f64, user: f64, calls: u64) -> ProcessActivity {
        let (call, cause) = (Some(wait.0.to_owned()), Some(wait.1));
        let blocked = Row { syscall: call, cause, count: calls / 2, ..Row::new(RowKind::Blocked, ms(blocked)) };
        let rows = vec![blocked, Row::new(RowKind::User, ms(user))];
        let filesystems = BTreeMap::from([("ext4".to_owned(), ms(1.0))]);
        let account = Account { threads: 1, calls, rows, filesystems, switches: 1, ..Account::default() };
        ProcessActivity { pid, pid_here: None, comm: comm.to_owned(), account }
    }

    /// Two seconds.
    pub fn activity() -> Activity {
        let mut sleeper = process(7, "sleeper", ("nanosleep", Cause::Sleep), 2_000.0, 0.0, 0);
        sleeper.account.filesystems.clear();
        let processes = vec![
            process(5, "cc1", ("read", Cause::DeviceRead), 20.0, 1_900.0, 4_000),
            process(6, "db\x1b[2J", ("fsync", Cause::Journal), 1_950.0, 10.0, 3_000),
            sleeper,
        ];
        Activity { length_ns: ms(2_000.0), living_processes: 3, living_threads: 3, processes, ..Activity::default() }
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample::ms;

    use super::sample::activity;
    use super::*;

    fn names(by: By, sort: Column, word: &str) -> Vec<String> {
        let mut group = |process: &ProcessActivity| format!("/group-{}", process.pid % 2);
        lines(&activity(), by, sort, word, &mut group).into_iter().map(|line| line.name).collect()
    }

    #[test]
    fn who_waits_for_files_longest_comes_first_and_who_only_sleeps_is_left_out() {
        assert_eq!(names(By::Process, Column::Files, ""), [r"db\u{1b}[2J", "cc1"]);
        assert_eq!(names(By::Process, Column::Cpu, ""), ["cc1", r"db\u{1b}[2J"]);
        assert_eq!(names(By::Process, Column::Pid, ""), ["cc1", r"db\u{1b}[2J"]);
        assert_eq!(names(By::Process, Column::Files, "JOUR"), [r"db\u{1b}[2J"]);
        assert_eq!(names(By::Cgroup, Column::Files, ""), ["/group-0", "/group-1"]);
    }

    #[test]
    fn cells_are_shares_and_rates() {
        let lines = lines(&activity(), By::Process, Column::Files, "", &mut |_| String::new());
        let cells: Vec<String> = Column::ALL.iter().map(|column| column.cell(&lines[0], ms(2_000.0))).collect();
        assert_eq!(cells, ["6", "97.5", "journal", "ext4", "0.5", "1,500", "1", r"db\u{1b}[2J"]);
        assert_eq!(percent(ms(6_800.0), ms(2_000.0)), "340");
    }
}
