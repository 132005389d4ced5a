//! The arguments of the command line, and nothing of what they do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
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
    /// Measure a question of several parts, kept in a file, and check what was expected
    Study(StudyArguments),
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
    /// Only time, as --traced 0
    #[arg(long, conflicts_with = "traced", help_heading = "Runs")]
    pub no_trace: bool,
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

/// Arguments of `inodyne study`.
#[derive(Debug, Args)]
pub struct StudyArguments {
    /// What to do.
    #[command(subcommand)]
    pub action: StudyAction,
}

/// What to do with studies.
#[derive(Debug, Subcommand)]
pub enum StudyAction {
    /// Measure a study, and check what it expects
    Run(Box<StudyRunArguments>),
    /// The studies that come with the program
    List,
    /// Print a study's file, which can be the start of one's own
    Show {
        /// A built-in study's name, or a file
        #[arg(value_name = "STUDY")]
        study: PathBuf,
    },
    /// Find the mistakes in a study without running anything
    Check {
        /// A file, or a built-in study's name
        #[arg(value_name = "STUDY")]
        study: PathBuf,
    },
}

/// Arguments of `inodyne study run`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "A study's file says which commands run in which places, how often, and what must come out of \
    it; docs/studies has the words. The report is short: `inodyne show --section` shows more of a recording.\n\n  \
    inodyne study run find-dtype --quick\n  \
    inodyne study run ./mine.toml -o mine.inodyne\n\n\
    The exit code is 1 where an expectation does not hold or a run failed; 2 usage, also mistakes in the file; 3 the \
    machine lacks something; 4 events were lost."
)]
pub struct StudyRunArguments {
    /// A built-in study's name, or a file: what has a slash or ends in .toml
    #[arg(value_name = "STUDY")]
    pub study: PathBuf,

    /// Less data and fewer runs, as the study says
    #[arg(long, help_heading = "Runs")]
    pub quick: bool,
    /// Of the order in which places and commands take turns
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Runs")]
    pub seed: u64,
    /// Run the commands as this user [default: who called sudo, otherwise who called]
    #[arg(long, value_name = "NAME", help_heading = "Command")]
    pub user: Option<String>,
    #[command(flatten)]
    pub tracing: TraceOptions,
    #[command(flatten)]
    pub report: ReportOptions,
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
    /// Time apart how long it takes until all that was written is on the device: flushes the file system right after each
    /// untraced run (and before every run, so that nothing older is left)
    #[arg(long, help_heading = "Runs")]
    pub durable: bool,
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
    /// Only this part: comparison, verdict, ledger, findings, syscalls, paths, threads, runs, overhead, by-comm
    #[arg(long, value_name = "PART", help_heading = "Report")]
    pub section: Option<Section>,
    /// Write the report into this file as well: .html, .json, .md, .csv or .txt
    #[arg(long, value_name = "FILE", value_parser = report_file, help_heading = "Report")]
    pub report: Option<(PathBuf, Format)>,
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
#[command(
    after_long_help = "folded, svg, firefox, speedscope and pprof show stacks: where the time was spent, on a CPU and off it.\n\
    Widths are times: those of a section sum to the ledgers of all threads.\n\n  \
    inodyne show find.inodyne -o report.html\n  \
    inodyne show new.inodyne --against old.inodyne -o new-since-old.svg\n  \
    inodyne show find.inodyne --format folded --section off-cpu --trace 1 | sort -rnk2 | head\n\n\
    Open firefox in profiler.firefox.com, speedscope in speedscope.app, perfetto in ui.perfetto.dev."
)]
pub struct ShowArguments {
    /// The recording
    pub recording: PathBuf,
    /// Form of the report [default: by the name of the output, otherwise text]
    #[arg(long, value_enum)]
    pub format: Option<ShowFormat>,
    /// Only this part. Of a text, of Markdown, of CSV: comparison, verdict, ledger, findings, syscalls, paths, threads, runs, overhead, by-comm.
    /// Of stacks: wall, on-cpu, off-cpu
    #[arg(long)]
    pub section: Option<String>,
    /// Write into this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Which trace, from 1 on [default: of several of one case that of the middle time]
    #[arg(long, value_name = "N", help_heading = "Stacks and timeline")]
    pub trace: Option<usize>,
    /// Show what changed since this recording (folded, svg)
    #[arg(long, value_name = "RECORDING", help_heading = "Stacks and timeline")]
    pub against: Option<PathBuf>,
    /// Show what changed since this trace, of that recording or of the same
    #[arg(long, value_name = "N", help_heading = "Stacks and timeline")]
    pub against_trace: Option<usize>,
}

impl ShowArguments {
    /// What is asked for: by `--format`, or by how the output is called.
    pub fn form(&self) -> ShowFormat {
        let by_name = match self.output.as_deref().and_then(extension) {
            Some("html" | "htm") => ShowFormat::Html,
            Some("json") => ShowFormat::Json,
            Some("md") => ShowFormat::Markdown,
            Some("csv") => ShowFormat::Csv,
            Some("folded") => ShowFormat::Folded,
            Some("svg") => ShowFormat::Svg,
            Some("pb" | "gz") => ShowFormat::Pprof,
            _ => ShowFormat::Text,
        };
        self.format.unwrap_or(by_name)
    }
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
    /// A page for a browser that needs nothing else, on standard output like JSON
    Html,
    /// The report for GitHub: an issue, a wiki, a pull request
    Markdown,
    /// One table, chosen by --section: the runs, unless another is named
    Csv,
    /// Times of the untraced runs, as `hyperfine --export-json` (1.x) writes them
    Hyperfine,
}

/// The forms in which a recording can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// For reading in a terminal
    Text,
    /// Everything
    Json,
    /// A page for a browser that needs nothing else
    Html,
    /// The report for GitHub: an issue, a wiki, a pull request
    Markdown,
    /// One table, chosen by --section: the runs, unless another is named
    Csv,
    /// Times of the untraced runs, as `hyperfine --export-json` (1.x) writes them
    Hyperfine,
    /// Stacks, one a line, with nanoseconds
    Folded,
    /// A flame graph
    Svg,
    /// Stacks for the Firefox Profiler
    Firefox,
    /// Stacks for speedscope
    Speedscope,
    /// Stacks for pprof
    Pprof,
    /// The timeline, for Perfetto
    Perfetto,
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

impl From<CacheState> for Cache {
    fn from(cache: CacheState) -> Cache {
        match cache {
            CacheState::AsIs => Cache::AsIs,
            CacheState::Warm => Cache::Warm,
            CacheState::Cold => Cache::Cold,
        }
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// A report's file, whose name says in which form.
fn report_file(name: &str) -> Result<(PathBuf, Format), String> {
    let path = PathBuf::from(name);
    let format = match extension(&path) {
        Some("html" | "htm") => Format::Html,
        Some("json") => Format::Json,
        Some("md") => Format::Markdown,
        Some("csv") => Format::Csv,
        Some("txt") => Format::Text,
        _ => return Err("the name must end in .html, .json, .md, .csv or .txt".to_owned()),
    };
    Ok((path, format))
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// A part of the whole: `2%`, or `2` with the same meaning.
pub fn part(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("write a percentage above 0 and below 100: 2%".to_owned()),
    }
}

/// Nobody waits longer, and sums of such times do not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A length of time of at most a year: `500ms`, `90s`, `5min`, `1h`; seconds without a unit.
pub fn time(text: &str) -> Result<Duration, String> {
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
        Ok(time) if !time.is_zero() && time <= LONGEST => Ok(time),
        _ => Err("must be longer than nothing and no longer than a year: 90s".to_owned()),
    }
}

fn ring_buffer(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bytes) if bytes.is_power_of_two() && bytes >= 4096 => Ok(bytes),
        _ => Err("must be a power of two, 4096 or more".to_owned()),
    }
}
