//! The command line: which commands there are. Each has its own module, with its arguments and what it does.

use clap::{Parser, Subcommand, ValueEnum};

use crate::attach::AttachArguments;
use crate::compare::CompareArguments;
use crate::diff::DiffArguments;
use crate::doctor::DoctorArguments;
use crate::explain::ExplainArguments;
use crate::import::ImportArguments;
use crate::manual::ManualArguments;
use crate::prove::ProveArguments;
use crate::rm::RmArgs;
use crate::run::RunArguments;
use crate::share::ShareArgs;
use crate::show::ShowArguments;
use crate::study::StudyArguments;
use crate::top::TopArguments;
use crate::tree::TreeArgs;
use crate::tune::TuneArguments;

/// Where the wall-clock time of a file-heavy command went (all of it), why, and what makes it faster.
#[derive(Debug, Parser)]
#[command(name = "inodyne", version, max_term_width = 100)]
pub struct Cli {
    /// When to colour reports: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        global = true,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub color: ColorWhen,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When reports are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal that shows colours, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorWhen {
    /// Applies to everything printed from here on.
    pub fn apply(self) {
        let choice = match self {
            ColorWhen::Auto => return,
            ColorWhen::Always => anstream::ColorChoice::Always,
            ColorWhen::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Time, trace and explain one command
    Run(Box<RunArguments>),
    /// Tell which place or command is slower, whether the difference is real, and why
    Compare(Box<CompareArguments>),
    /// Measure a question of several parts, described in a file, and check the expected results
    Study(StudyArguments),
    /// Try the cure for a finding in a place made for it, and score the prediction
    Prove(ProveArguments),
    /// Find which settings make a command faster at a place, tried and confirmed
    Tune(Box<TuneArguments>),
    /// Watch processes that are already running, and say what they wait for
    Attach(AttachArguments),
    /// Show continuously who waits for files, and for what
    Top(TopArguments),
    /// Make a recording from an strace log; needs no privileges
    Import(ImportArguments),
    /// Show a recording again; needs no privileges
    Show(ShowArguments),
    /// Say what differs between two recordings, and whether it got worse; needs no privileges
    Diff(DiffArguments),
    /// Explain a finding, a cause, or a word in a report
    Explain(ExplainArguments),
    /// Remove files and directories like GNU rm, but faster and safer
    Rm(RmArgs),
    /// Make a file tree determined by a few numbers, or verify one down to the last byte
    Tree(TreeArgs),
    /// Share a directory with another machine, whose kernel caches it and is notified of every change
    Share(ShareArgs),
    /// Say what this machine can do, and how to get the rest
    Doctor(DoctorArguments),
    /// Print a man page or a shell completion script
    Manual(ManualArguments),
}
