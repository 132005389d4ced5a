//! Argument groups shared by several commands, and how their values are written.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use inodyne_lab::{DataSpec, PlaceSpec};
use inodyne_model::run::CacheState;
use inodyne_render::Section;
use inodyne_trace::{Options, RequestMarks};

use crate::format::{ReportFormat, recording_file, report_file};

/// What can trace a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TracerChoice {
    /// The BPF programs, or strace where they cannot be loaded
    #[default]
    Auto,
    /// The BPF programs: everything that inodyne can report
    Bpf,
    /// strace, which needs no root: calls with their times and paths; slow, and its overhead is part of the times
    Strace,
    /// Nothing: the command is only timed
    None,
}

/// Where commands run.
#[derive(Debug, Args)]
pub struct PlaceOptions {
    /// Where to run: a directory, or a file system to create; may be given several times
    #[arg(long = "at", value_name = "PLACE", help_heading = "Places")]
    pub places: Vec<PlaceSpec>,
    /// What to put into a place created here: tree:dirs=1000,files=30,bytes=1, a directory, a tar archive, or script:PATH
    #[arg(long, value_name = "DATA", help_heading = "Places")]
    pub data: Option<DataSpec>,
    /// State of the caches before each run; may be given several times
    #[arg(long = "cache", value_name = "STATE", value_enum, default_value = "as-is", help_heading = "Places")]
    pub caches: Vec<Cache>,
    /// Recreate and refill the place before each run: for commands that change what they find
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
    /// Kill a run after this long: 30s, 5min
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Runs")]
    pub timeout: Option<Duration>,
    /// Also time how long it takes until everything written is on the device: flushes the file system right after each run, timed for
    /// untraced runs (and before every run, so that nothing older is left)
    #[arg(long, help_heading = "Runs")]
    pub durable: bool,
    /// Seed for the order in which places and commands take turns
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Runs")]
    pub seed: u64,
}

/// How the command is started.
#[derive(Debug, Args)]
pub struct CommandOptions {
    /// Run the command as this user [default: the user who called sudo, otherwise the calling user]
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
    /// On-CPU samples per second and CPU; 0 for none
    #[arg(long, value_name = "HZ", default_value_t = 997, value_parser = clap::value_parser!(u32).range(0..=10_000),
          help_heading = "Tracing")]
    pub sample_hz: u32,
    /// Size that the ring buffer for the timeline may grow to, in bytes: a power of two, 4096 or more. It begins with 1/32 of that or
    /// more
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, value_parser = ring_buffer, help_heading = "Tracing")]
    pub ring_buffer: u32,
    /// How many times threads may leave a CPU before only sums are kept of what follows: 4,000,000, or fewer if a sixteenth of the memory
    /// is not enough for that many
    #[arg(long, value_name = "N", help_heading = "Tracing")]
    pub max_intervals: Option<usize>,
    /// Threads that may be alive at the same time, besides those that are joined; each takes 2.3 KB of memory once it exists
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(2..=MOST_THREADS),
          help_heading = "Tracing")]
    pub max_threads: u32,
    /// Count the paths that are looked up, for the first 16,384 distinct ones; slows lookups down by about 0.15 µs
    #[arg(long, help_heading = "Tracing")]
    pub paths: bool,
    /// Count what is done with each file used by descriptor, for the first 16,384 distinct ones; slows such calls down by about 0.15 µs
    #[arg(long, help_heading = "Tracing")]
    pub files: bool,
    /// Tell apart the requests that a server answers, and what the slowest of them waited for. A request lasts from when data have been read
    /// from a socket until some have been written to it, or from the end of one system call to the end of another on the same descriptor
    #[arg(long, value_name = "READ,WRITE", num_args = 0..=1, require_equals = true, default_missing_value = "sockets",
          help_heading = "Tracing")]
    pub request: Option<RequestMarks>,
    /// Number of lost events up to which the trace is trusted
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Tracing")]
    pub max_lost: u64,
}

impl TraceOptions {
    /// These options, for the tracer.
    pub fn tracer(&self) -> Options {
        let TraceOptions { sample_hz, ring_buffer, max_intervals, max_threads, paths, files, request, .. } = *self;
        let max_paths = if paths { MOST_PATHS } else { 0 };
        let max_files = if files { MOST_FILES } else { 0 };
        let defaults = Options { timeline_bytes: ring_buffer, refuse: refuse(), ..Options::default() };
        let max_intervals = max_intervals.unwrap_or(defaults.max_intervals);
        Options { sample_hz, max_intervals, max_threads, max_paths, max_files, requests: request, ..defaults }
    }
}

/// Options of a tracer that traces everything there is to trace.
pub fn everything_traced() -> Options {
    let requests = Some(RequestMarks::Sockets);
    Options { max_paths: MOST_PATHS, max_files: MOST_FILES, requests, refuse: refuse(), ..Options::default() }
}

/// For tests: what the kernel should refuse (CONTRIBUTING.md).
fn refuse() -> Option<String> {
    std::env::var("INODYNE_TEST_REFUSE").ok()
}

/// Distinct paths that `--paths` keeps.
const MOST_PATHS: u32 = 16_384;
/// As many as a machine can have: `PID_MAX_LIMIT` in include/linux/threads.h.
const MOST_THREADS: i64 = 4 << 20;

/// Distinct files that `--files` keeps.
const MOST_FILES: u32 = 16_384;

/// What becomes of the results.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Report format. `run` prints text on standard error, after the command's own output; any other format goes to standard output, and
    /// the command's own output then goes to standard error
    #[arg(long, value_enum, default_value_t, help_heading = "Report")]
    pub format: ReportFormat,
    /// Only this part
    #[arg(long, value_name = "PART", help = section_help(), help_heading = "Report")]
    pub section: Option<Section>,
    /// Print everything, not only the first screen
    #[arg(short, long, help_heading = "Report")]
    pub verbose: bool,
    /// Also write the report to this file: .html, .json, .md, .csv or .txt
    #[arg(long, value_name = "FILE", value_parser = report_file, help_heading = "Report")]
    pub report: Option<(PathBuf, ReportFormat)>,
    /// Save a recording to this file, FILE.inodyne
    #[arg(short, long, value_name = "FILE", value_parser = recording_file, help_heading = "Report")]
    pub output: Option<PathBuf>,
}

/// Which parts of a report there are.
pub fn section_help() -> String {
    format!("Only this part: {}; of system calls also {}", Section::names(), Section::classes_of_calls())
}

/// The states of the caches that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// Change nothing
    AsIs,
    /// Read all names and attributes in the place first
    Warm,
    /// Drop everything cached of the place first
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
