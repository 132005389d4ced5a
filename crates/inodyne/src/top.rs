//! `inodyne top`: who waits for files and for what, refreshed continuously, for the whole machine or for any processes that `attach` can follow.
//!
//! | module | what it knows |
//! |---|---|
//! | `budget` | how many calls are timed, so that it costs no more than it may; pure |
//! | `look` | what happened since the last time, and what it cost to find out |
//! | `table` | the columns, and the lines in their order; pure |
//! | `open_file` | which file a process is at right now |
//! | `groups` | which control group a process is in |
//! | `screen` | the same on a terminal: looks and keys in one loop |
//! | `view` | what the user has chosen, and what each key does |
//! | `draw` | draws it; pure |
//! | `keys` | decodes keys from the bytes that a terminal sends |
//! | `terminal` | the terminal, which is left as it was |
//! | `batch` | the same as plain text and as JSON |

mod batch;
mod budget;
mod draw;
mod groups;
mod keys;
mod look;
mod open_file;
mod screen;
mod table;
mod terminal;
mod view;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use inodyne_trace::capability;

use crate::failure::{ExitStatus, Failure};
use crate::options::time;
use crate::target::{Target, TargetOptions};
use batch::BatchFormat;
use budget::{Budget, Percent};
use table::{By, Column};

/// Arguments of `inodyne top`.
#[derive(Debug, Args)]
#[command(
    mut_group("TargetOptions", |group| group.required(false)),
    after_long_help = "Without a target it follows everybody but inodyne itself. FILES% is the time that the threads of a process waited for \
    files, CPU% the time that they ran: 100 is one thread all the time.\n\n  \
    inodyne top\n  \
    inodyne top --unit postgresql --interval 10s\n  \
    inodyne top --batch -n 3\n  \
    inodyne top --container web --batch --format json\n\n\
    It ends with Ctrl-C, or when nobody is left. The exit code is 0; 2 usage, 3 the machine lacks something."
)]
pub struct TopArguments {
    #[command(flatten)]
    pub target: TargetOptions,
    /// Time between updates: 500ms, 2s, 1min; 100ms or more
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "2s", help_heading = "Table")]
    pub interval: Duration,
    /// End after this many updates
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Table")]
    pub count: Option<u64>,
    /// What each line stands for
    #[arg(long, value_enum, default_value_t, help_heading = "Table")]
    pub by: By,
    /// The column to sort by
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t, help_heading = "Table")]
    pub sort: Column,
    /// How much tracing may cost the processes it follows, as a percentage of one CPU; beyond that not every call is timed, and top says so
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Cost")]
    pub budget: Percent,
    /// Time one call in N, chosen at random, and fewer only beyond the budget. All are counted, and all waits are timed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 1,
          help_heading = "Cost")]
    pub sample_calls: u32,
    /// Length of a window recorded with the w key
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "10s", conflicts_with = "batch",
          help_heading = "Recordings")]
    pub length: Duration,
    /// Directory for these recordings, which are named after their times
    #[arg(long, value_name = "DIRECTORY", default_value = ".", conflicts_with = "batch", help_heading = "Recordings")]
    pub into: PathBuf,
    /// Print the table repeatedly, as plain text
    #[arg(long, help_heading = "Without a terminal")]
    pub batch: bool,
    /// Format of that output
    #[arg(long, value_enum, default_value_t, requires = "batch", help_heading = "Without a terminal")]
    pub format: BatchFormat,
    /// Number of lines in the table; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20, requires = "batch", help_heading = "Without a terminal")]
    pub rows: usize,
}

impl TopArguments {
    /// What it may cost.
    fn budget(&self) -> Budget {
        Budget::new(self.budget, self.sample_calls)
    }
}

/// Runs the command.
pub fn run(arguments: &TopArguments) -> Result<ExitCode, Failure> {
    let is_at_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    if !arguments.batch && !is_at_terminal {
        return Err(Failure::new(
            ExitStatus::Usage,
            "there is no terminal to draw on and to read keys from: use --batch",
        ));
    }
    if !arguments.into.is_dir() {
        let message = format!("--into {}: is not a directory", arguments.into.display());
        return Err(Failure::new(ExitStatus::Usage, message));
    }
    capability::require_for_tracing().map_err(|missing| Failure::new(ExitStatus::Lacking, missing))?;
    let target = if arguments.target.is_given() { Target::new(&arguments.target)? } else { Target::All };
    if arguments.batch { batch::run(arguments, &target) } else { screen::run(arguments, &target) }
}

/// Looks taken closer together would mostly see themselves.
const SHORTEST: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    let length = time(text)?;
    if length < SHORTEST { Err("must be 100ms or more".to_owned()) } else { Ok(length) }
}
