//! The arguments of the command line, and nothing of what they do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use inodyne_lab::{DataSpec, PlaceSpec};
use inodyne_model::run::CacheState;
use inodyne_render::Section;

use crate::rm::RmArgs;
use crate::tree::TreeArgs;

/// Where the wall-clock time of a file-heavy command went (all of it), why, and what makes it faster.
#[derive(Debug, Parser)]
#[command(name = "inodyne", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Time, trace and explain one command
    Run(Box<RunArguments>),
    /// Tell which place or command is slower, whether that is real, and why
    Compare(Box<CompareArguments>),
    /// Try the cure of a finding in a place made for it, and score the prediction
    Prove(ProveArguments),
    /// Show a recording again; needs no privileges
    Show(ShowArguments),
    /// Remove files and directories like GNU rm, but faster and safer
    Rm(RmArgs),
    /// Make a tree of files that follows from a few numbers, or verify one to the byte
    Tree(TreeArgs),
    /// Say what this machine can do, and how to get the rest
    Doctor,
    /// Print a man page or a shell completion
    Manual(ManualArguments),
}

/// Arguments of `inodyne run`.
#[derive(Debug, Args)]
#[command(after_long_help = "PLACE is a directory, or a file system that inodyne makes, mounts and removes:\n  \
    ext2, ext3, ext4, xfs, btrfs, tmpfs, squashfs, erofs, or one that stands on another:\n  \
    overlay:lower=PLACE, bind:PLACE, fuse:PLACE (through a FUSE server). A label may stand before it,\n  \
    options after a colon: size=4G, mkfs=ARGUMENTS, mount=OPTIONS, set=FILE=VALUE;\n  \
    a slow device: delay=2ms, bandwidth=50M, iops=200; a used file system: age=3, full=80%.\n\n  \
    inodyne run --at ext4 --data tree:dirs=1000,files=30,bytes=1 -- find .\n  \
    inodyne run --at 'slow=ext4:mkfs=-O ^filetype' --cache cold -o find.inodyne -- find .\n\n\
    The exit code is the command's own; 2 usage, 3 the machine lacks something, 4 events were lost.")]
pub struct RunArguments {
    #[command(flatten)]
    pub places: PlaceOptions,

    /// Untraced runs to time, besides the traced one
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0, help_heading = "Runs")]
    pub runs: u32,
    /// Only time the command, do not trace it
    #[arg(long, help_heading = "Runs")]
    pub no_trace: bool,
    #[command(flatten)]
    pub around: RunOptions,

    #[command(flatten)]
    pub command: CommandOptions,
    #[command(flatten)]
    pub tracing: TraceOptions,
    #[command(flatten)]
    pub report: ReportOptions,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub argv: Vec<OsString>,
}

/// Arguments of `inodyne compare`.
#[derive(Debug, Args)]
#[command(after_long_help = "The first place, or the first command, is what the others are held against.\n\n  \
    inodyne compare --at ext4 --at overlay:lower=ext4 --data tree:dirs=100,files=30 -- find . -size +1k\n  \
    inodyne compare -c 'rm -rf tree' -c 'inodyne rm -rf tree' --at xfs --data app.tar --fresh\n\n\
    Runs that fail are kept and counted, and withhold the verdict. The exit code is then 1, unless --ignore-failure.")]
pub struct CompareArguments {
    #[command(flatten)]
    pub places: PlaceOptions,

    /// A command to compare; may be given several times. Plain words are run as they are, all else by /bin/sh -c
    #[arg(short = 'c', long = "command", value_name = "COMMAND", help_heading = "Command")]
    pub commands: Vec<String>,

    /// Pairs of untraced runs: at least so many with --until
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, help_heading = "Runs",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Go on until each interval reaches no further than this to either side, as a part: 2%
    #[arg(long, value_name = "PERCENT", value_parser = part, help_heading = "Runs")]
    pub until: Option<f64>,
    /// Begin no further block after so long: 90s, 5min
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Runs")]
    pub max_time: Option<Duration>,
    /// Runs of each kind that are thrown away first
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Runs")]
    pub warmup: u32,
    /// Traced runs of each kind, which say where the difference comes from; 0 for none [default: as --runs, at most 10]
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub traced: Option<u32>,
    /// Differences below this part count as none
    #[arg(long, value_name = "PERCENT", value_parser = part, default_value = "2%", help_heading = "Runs")]
    pub margin: f64,
    /// Do not fail because runs of the command did
    #[arg(short = 'i', long, help_heading = "Runs")]
    pub ignore_failure: bool,
    #[command(flatten)]
    pub around: RunOptions,

    /// Show what the commands print, on standard error
    #[arg(long, help_heading = "Command")]
    pub show_output: bool,
    #[command(flatten)]
    pub command: CommandOptions,
    #[command(flatten)]
    pub tracing: TraceOptions,
    #[command(flatten)]
    pub report: ReportOptions,

    /// The command and its arguments, instead of --command
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "commands", conflicts_with = "commands")]
    pub argv: Vec<OsString>,
}

/// Where commands run.
#[derive(Debug, Args)]
pub struct PlaceOptions {
    /// Where to run: a directory, or a file system to make; may be given several times
    #[arg(long = "at", value_name = "PLACE", help_heading = "Places")]
    pub places: Vec<PlaceSpec>,
    /// What to put into a place made here: tree:dirs=1000,files=30,bytes=1, a directory, a tar archive, or script:PATH
    #[arg(long, value_name = "DATA", help_heading = "Places")]
    pub data: Option<DataSpec>,
    /// Caches before each run; may be given several times
    #[arg(long = "cache", value_name = "STATE", value_enum, default_value = "as-is", help_heading = "Places")]
    pub caches: Vec<Cache>,
    /// Make and fill the place anew before each run: for commands that change what they find
    #[arg(long, help_heading = "Places")]
    pub fresh: bool,
}

/// What is done around each run.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Shell command to run in the place before each run, not measured
    #[arg(long, value_name = "COMMAND", help_heading = "Runs")]
    pub prepare: Option<OsString>,
    /// Shell command to run in the place after each run, not measured
    #[arg(long, value_name = "COMMAND", help_heading = "Runs")]
    pub cleanup: Option<OsString>,
    /// Kill a run after so long: 30s, 5min
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Runs")]
    pub timeout: Option<Duration>,
    /// Of the order in which places and commands take turns
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Runs")]
    pub seed: u64,
}

/// How the command is started.
#[derive(Debug, Args)]
pub struct CommandOptions {
    /// Run the command as this user [default: who called sudo, otherwise who called]
    #[arg(long, value_name = "NAME", help_heading = "Command")]
    pub user: Option<String>,
    /// Set a variable in the command's environment; may be given several times
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable, help_heading = "Command")]
    pub environment: Vec<(OsString, OsString)>,
    /// Start the command in this directory below the place
    #[arg(long, value_name = "DIRECTORY", help_heading = "Command")]
    pub cwd: Option<PathBuf>,
}

/// How much is traced.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// On-CPU samples a second and CPU; 0 for none
    #[arg(long, value_name = "HZ", default_value_t = 997, value_parser = clap::value_parser!(u32).range(0..=10_000),
          help_heading = "Tracing")]
    pub sample_hz: u32,
    /// Size of the ring buffer for the timeline, in bytes: a power of two from 4096 on
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, value_parser = ring_buffer, help_heading = "Tracing")]
    pub ring_buffer: u32,
    /// Count the paths that are looked up, the first 16,384 different ones; slows look-ups down by some 0.15 µs
    #[arg(long, help_heading = "Tracing")]
    pub paths: bool,
    /// Lost events up to which the trace is trusted
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Tracing")]
    pub max_lost: u64,
}

/// What becomes of the results.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Form of the report
    #[arg(long, value_enum, default_value_t, help_heading = "Report")]
    pub format: Format,
    /// Keep a recording in this file
    #[arg(short, long, value_name = "FILE", help_heading = "Report")]
    pub output: Option<PathBuf>,
}

/// Arguments of `inodyne prove`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "The prediction is printed first. Then the command runs without the cure and with it, in turns, each time \
    in a place made and filled anew, and the score is printed and kept in the recording.\n\n\
    By itself it can apply the cures of dtype-missing, cold-metadata, cold-data, sync-bound, copy-up, single-stream \
    (where the command ends in a list of files), journal-wait, write-throttled and queue-full (where the place was made \
    with a small journal, or with changed settings). For all others give --instead.\n\n  \
    inodyne prove find.inodyne dtype-missing\n  \
    inodyne prove build.inodyne failed-lookups --instead 'PATH=/opt/bin make'"
)]
pub struct ProveArguments {
    /// The recording
    pub recording: PathBuf,
    /// Only this finding; all whose cure can be applied otherwise
    pub finding: Option<String>,
    /// Try this shell command instead of the recorded one, in the same place
    #[arg(long, value_name = "COMMAND")]
    pub instead: Option<String>,
    /// Pairs of runs to measure
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: u32,
    /// Try in this place instead of the recorded one
    #[arg(long = "at", value_name = "PLACE")]
    pub place: Option<String>,
    /// What to put into it, instead of what the recording says
    #[arg(long, value_name = "DATA")]
    pub data: Option<String>,
    /// Shell command to run in the place before each run, not measured
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Run the command as this user [default: who called sudo, otherwise who called]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Keep the scored recording in this file instead of its own
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `inodyne show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The recording
    pub recording: PathBuf,
    /// Form of the report
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Only this part: comparison, verdict, ledger, findings, syscalls, paths, threads, runs, overhead, by-comm
    #[arg(long)]
    pub section: Option<Section>,
}

/// Arguments of `inodyne manual`.
#[derive(Debug, Args)]
pub struct ManualArguments {
    /// What to print
    #[arg(value_enum)]
    pub what: Manual,
}

/// What `inodyne manual` can print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Manual {
    /// The man page inodyne(1), with all subcommands
    Man,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
}

/// The forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For reading in a terminal; `run` prints it on standard error, after the command's own output
    #[default]
    Text,
    /// Everything, on standard output; the command's own output then goes to standard error
    Json,
}

/// The states of the caches that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// Change nothing
    AsIs,
    /// Read all names and attributes of the place first
    Warm,
    /// Forget everything cached of the place first
    Cold,
}

impl From<Cache> for CacheState {
    fn from(cache: Cache) -> CacheState {
        match cache {
            Cache::AsIs => CacheState::AsIs,
            Cache::Warm => CacheState::Warm,
            Cache::Cold => CacheState::Cold,
        }
    }
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// A part of the whole: `2%`, or `2` with the same meaning.
fn part(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("write a percentage above 0 and below 100: 2%".to_owned()),
    }
}

/// A length of time: `500ms`, `90s`, `5min`, `1h`; seconds without a unit.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match text[digits..].trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("the units are ms, s, min and h: 90s".to_owned()),
    };
    let seconds = text[..digits].parse::<f64>().map_err(|_| "write a number and a unit: 90s".to_owned())? * unit;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("must be longer than nothing: 90s".to_owned()),
    }
}

fn ring_buffer(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bytes) if bytes.is_power_of_two() && bytes >= 4096 => Ok(bytes),
        _ => Err("must be a power of two, 4096 or more".to_owned()),
    }
}
