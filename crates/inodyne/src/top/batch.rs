//! The table as plain text or as JSON, printed repeatedly, for logs and for programs.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;
use inodyne_render::escaped;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::TopArguments;
use super::groups::Groups;
use super::look::{DRAINED_EVERY, Look, Watcher};
use super::table::{By, Column, Line, lines};
use crate::failure::{ExitStatus, Failure};
use crate::target::Target;
use crate::window::{came_within, ending_signals, forget};

/// The format of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum BatchFormat {
    /// For people
    #[default]
    Text,
    /// One object per update, on a line of its own
    Json,
}

/// Prints until a signal comes, nobody is left, or there were enough looks.
///
/// # Errors
/// The machine lacks something, or there is nobody to follow.
pub fn run(arguments: &TopArguments, target: &Target) -> Result<ExitCode, Failure> {
    let mut signals = ending_signals()?;
    let mut watcher = Watcher::new(target, arguments.budget())?;
    let mut groups = Groups::default();
    let mut next = Instant::now() + arguments.interval;
    let mut left = arguments.count;
    while left != Some(0) {
        let rest = next.saturating_duration_since(Instant::now());
        if came_within(&mut signals, rest.min(DRAINED_EVERY), None) {
            break;
        }
        watcher.drain();
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + arguments.interval;
        let is_anyone_left = watcher.is_anyone_left();
        if let Some(look) = watcher.look()? {
            groups.keep(&look.activity);
            let mut lines = lines(&look.activity, arguments.by, arguments.sort, "", &mut |process| groups.of(process));
            let more = lines.len().saturating_sub(if arguments.rows == 0 { lines.len() } else { arguments.rows });
            lines.truncate(lines.len() - more);
            let printed = match arguments.format {
                BatchFormat::Text => text(&look, &target.label(), arguments.by, &lines, more),
                BatchFormat::Json => json(&look, &lines, more),
            };
            match io::stdout().lock().write_all(printed.as_bytes()) {
                // The reader has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                Err(error) => return Err(Failure::new(ExitStatus::Lacking, format_args!("standard output: {error}"))),
                Ok(()) => {}
            }
            left = left.map(|left| left - 1);
        }
        if !is_anyone_left {
            break;
        }
    }
    forget(signals);
    Ok(ExitCode::SUCCESS)
}

/// A line about the look, the table, and an empty line.
fn text(look: &Look, label: &str, by: By, lines: &[Line], more: usize) -> String {
    let length = look.activity.length_ns;
    let at = look.at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S");
    let mut text = format!("{at}  {}, {:.1} s: {}", escaped(label), length.as_secs_f64(), look.summary());
    let lost = look.lost();
    for more in [look.timing(), lost].iter().filter(|more| !more.is_empty()) {
        write!(text, "; {more}").expect("a string takes all");
    }
    text.push('\n');
    let mut add = |cell: &dyn Fn(Column) -> String| {
        let cells = Column::ALL.iter().map(|column| match column {
            Column::Name => cell(*column),
            column if column.is_number() => format!("{:>width$} ", cell(*column), width = column.width()),
            column => format!("{:width$} ", cell(*column), width = column.width()),
        });
        text.extend(cells);
        text.push('\n');
    };
    add(&|column| column.title(by).to_owned());
    for line in lines {
        add(&|column| column.cell(line, length));
    }
    if more > 0 {
        writeln!(text, "and {more} more").expect("a string takes all");
    }
    text.push('\n');
    text
}

/// A look, for programs.
#[derive(Serialize)]
struct LookRecord<'a> {
    at: String,
    length_ns: u64,
    processes: usize,
    threads: usize,
    own_cpu: f64,
    tracing_cpu: f64,
    budget_cpu: f64,
    timed_one_in: u32,
    lost: u64,
    rows: Vec<LineRecord<'a>>,
    more_rows: usize,
}

/// A line, for programs.
#[derive(Serialize)]
struct LineRecord<'a> {
    pid: Option<u32>,
    name: &'a str,
    processes: usize,
    threads: usize,
    files_ns: u64,
    cause: Option<&'a str>,
    filesystem: Option<&'a str>,
    file: Option<&'a str>,
    cpu_ns: u64,
    ready_ns: u64,
    calls: u64,
}

impl<'a> LineRecord<'a> {
    fn new(line: &'a Line, look: &'a Look) -> LineRecord<'a> {
        let account = &line.account;
        LineRecord {
            pid: line.pid,
            name: &line.name,
            processes: line.processes,
            threads: account.threads,
            files_ns: account.files_ns().0,
            cause: account.main_cause().map(|cause| cause.as_str()),
            filesystem: account.main_filesystem(),
            file: look.file(line),
            cpu_ns: account.cpu_ns().0,
            ready_ns: account.ready_ns().0,
            calls: account.calls,
        }
    }
}

fn json(look: &Look, lines: &[Line], more_rows: usize) -> String {
    let record = LookRecord {
        at: look.at.to_string(),
        length_ns: look.activity.length_ns.0,
        processes: look.activity.living_processes,
        threads: look.activity.living_threads,
        own_cpu: look.cost.own,
        tracing_cpu: look.cost.tracing,
        budget_cpu: look.cost.limit.of_a_cpu(),
        timed_one_in: look.cost.timed_one_in,
        lost: look.activity.lost.total(),
        rows: lines.iter().map(|line| LineRecord::new(line, look)).collect(),
        more_rows,
    };
    serde_json::to_string(&record).expect("plain data") + "\n"
}
