//! fio(1): how it is invoked for each measurement, and what it reports.
//!
//! It gets the file as its standard input, since the file has no name, and runs as one process that dies with us. Its output is JSON; errors
//! go to standard error.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use inodyne_model::Nanos;
use inodyne_model::disk_limits::{DiskLimits, Latency};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use serde::Deserialize;

/// The things that are measured, in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measurement {
    /// The file is written for the first time: that costs a file system more than overwriting it, and is no measure of the disk.
    Fill,
    /// The file is overwritten sequentially.
    Write,
    /// It is read sequentially.
    Read,
    /// Pieces of it are read at random, one at a time.
    ReadOne,
    /// The same, many at once.
    ReadMany,
    /// Pieces of it are written to the page cache at random, and each is flushed to the disk.
    Flush,
}

/// What fio found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Found {
    /// The bytes transferred.
    pub(crate) bytes: u64,
    /// Bytes per second.
    pub(crate) bytes_per_s: u64,
    /// Requests per second.
    pub(crate) requests_per_s: u64,
    /// How long one took: a request, or for [`Measurement::Flush`] a flush.
    pub(crate) latency: Latency,
}

impl Measurement {
    /// All of them.
    pub const ALL: [Measurement; 6] = [
        Measurement::Fill,
        Measurement::Write,
        Measurement::Read,
        Measurement::ReadOne,
        Measurement::ReadMany,
        Measurement::Flush,
    ];

    /// What is being done.
    pub fn words(self) -> &'static str {
        match self {
            Measurement::Fill => "making the file",
            Measurement::Write => "writing in sequence",
            Measurement::Read => "reading in sequence",
            Measurement::ReadOne => "reading at random, one at a time",
            Measurement::ReadMany => "reading at random, 32 at once",
            Measurement::Flush => "writing and flushing",
        }
    }

    /// Whether everything it transfers bypasses the page cache, so that the disk transfers it at the same time.
    pub(crate) fn is_direct(self) -> bool {
        self != Measurement::Flush
    }

    /// Whether it writes.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Measurement::Fill | Measurement::Write | Measurement::Flush)
    }

    /// The arguments for this many bytes from the start of the file, and for this long. A write measurement ends once it has written all of that.
    fn arguments(self, bytes: u64, time: Duration) -> Vec<String> {
        let (pattern, size, engine, at_once) = match self {
            Measurement::Fill | Measurement::Write => ("write", "1m", "libaio", 4),
            Measurement::Read => ("read", "1m", "libaio", 4),
            Measurement::ReadOne => ("randread", "4k", "psync", 1),
            Measurement::ReadMany => ("randread", "4k", "libaio", DiskLimits::AT_ONCE),
            Measurement::Flush => ("randwrite", "4k", "psync", 1),
        };
        let mut all = vec![
            "--name=inodyne".to_owned(),
            "--filename=/proc/self/fd/0".to_owned(),
            "--output-format=json".to_owned(),
            "--thread".to_owned(),
            "--disk_util=0".to_owned(),
            // The file already has its final length.
            "--fallocate=none".to_owned(),
            "--percentile_list=50:99".to_owned(),
            // The next measurement may find in the disk's own cache what this one has read.
            "--randrepeat=0".to_owned(),
            "--norandommap".to_owned(),
            format!("--rw={pattern}"),
            format!("--bs={size}"),
            format!("--ioengine={engine}"),
            format!("--iodepth={at_once}"),
            format!("--direct={}", u8::from(self.is_direct())),
            format!("--size={bytes}"),
            // Zero would mean no limit.
            format!("--runtime={}ms", time.as_millis().max(1)),
        ];
        match self {
            Measurement::Fill => all.push("--end_fsync=1".to_owned()),
            Measurement::Flush => all.push("--fdatasync=1".to_owned()),
            _ if self.writes() => {}
            _ => all.push("--time_based".to_owned()),
        }
        all
    }
}

/// Has fio measure this with the given number of bytes of a file. The error is what fio said.
pub(crate) fn run(
    program: &Path,
    measurement: Measurement,
    file: &File,
    bytes: u64,
    time: Duration,
) -> Result<Found, String> {
    let us = getpid();
    let die_with_us = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() == Some(us) { Ok(()) } else { Err(std::io::Error::from(rustix::io::Errno::SRCH)) }
    };
    let mut command = Command::new(program);
    let input = file.try_clone().map_err(|error| error.to_string())?;
    command.args(measurement.arguments(bytes, time)).stdin(Stdio::from(input)).env("LC_ALL", "C").current_dir("/");
    // SAFETY: between fork and exec only system calls are made and nothing is allocated.
    unsafe { command.pre_exec(die_with_us) };
    let output = command.output().map_err(|error| error.to_string())?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    let complaint = complaints.lines().map(str::trim).find(|line| !line.is_empty());
    let found = match output.status.success() {
        true => parse(&String::from_utf8_lossy(&output.stdout), measurement),
        false => Err(output.status.to_string()),
    };
    found.map_err(|problem| complaint.map_or(problem, str::to_owned))
}

/// The part of fio's output that matters. Notes may precede it.
#[derive(Deserialize)]
struct Answer {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    error: i32,
    read: Side,
    write: Side,
    sync: Flushes,
}

#[derive(Deserialize)]
struct Side {
    io_bytes: u64,
    bw_bytes: u64,
    iops: f64,
    #[serde(rename = "clat_ns")]
    latency: Times,
}

#[derive(Deserialize)]
struct Flushes {
    #[serde(rename = "lat_ns")]
    latency: Times,
}

#[derive(Deserialize)]
struct Times {
    /// By percentile, such as `50.000000`; empty if nothing was done.
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
}

impl Times {
    fn latency(&self) -> Latency {
        let at = |key: &str| Nanos(self.percentile.get(key).copied().unwrap_or_default());
        Latency { p50_ns: at("50.000000"), p99_ns: at("99.000000") }
    }
}

/// What fio found, parsed from what it printed.
fn parse(text: &str, measurement: Measurement) -> Result<Found, String> {
    let json = text.find('{').map_or("", |at| &text[at..]);
    let answer: Answer =
        serde_json::from_str(json).map_err(|error| format!("its answer is not understood: {error}"))?;
    let [job] = &answer.jobs[..] else { return Err(format!("it did {} jobs and not one", answer.jobs.len())) };
    if job.error != 0 {
        return Err(std::io::Error::from_raw_os_error(job.error).to_string());
    }
    let side = if measurement.writes() { &job.write } else { &job.read };
    let times = if measurement == Measurement::Flush { &job.sync.latency } else { &side.latency };
    let found = Found {
        bytes: side.io_bytes,
        bytes_per_s: side.bw_bytes,
        requests_per_s: side.iops.round() as u64,
        latency: times.latency(),
    };
    if found.bytes == 0 || found.latency.p50_ns == Nanos::ZERO {
        return Err("it did nothing".to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 printed it: random reads of 4 KiB one at a time, and writes of 4 KiB with fdatasync.
    const READ_ONE: &str = include_str!("../fixtures/fio-read-one.json");
    const FLUSH: &str = include_str!("../fixtures/fio-flush.json");

    fn latency(p50: u64, p99: u64) -> Latency {
        Latency { p50_ns: Nanos(p50), p99_ns: Nanos(p99) }
    }

    #[test]
    fn what_fio_says_is_read() {
        let read = parse(READ_ONE, Measurement::ReadOne).unwrap();
        let expected = Found {
            bytes: 19_030_016,
            bytes_per_s: 37_984_063,
            requests_per_s: 9_273,
            latency: latency(67_072, 1_089_536),
        };
        assert_eq!(read, expected);
        let noted = format!("note: both iodepth >= 1 and synchronous I/O engine are selected\n{READ_ONE}");
        assert_eq!(parse(&noted, Measurement::ReadOne), Ok(expected));
    }

    #[test]
    fn a_flush_takes_what_fdatasync_takes() {
        let flush = parse(FLUSH, Measurement::Flush).unwrap();
        assert_eq!((flush.bytes, flush.latency), (3_960_832, latency(224_256, 7_897_088)));
    }

    #[test]
    fn what_was_not_done_is_not_a_measurement() {
        assert_eq!(parse(READ_ONE, Measurement::Write), Err("it did nothing".to_owned()));
        let failed = READ_ONE.replace("\"error\" : 0", "\"error\" : 5");
        assert!(parse(&failed, Measurement::ReadOne).unwrap_err().contains("Input/output error"));
        assert!(parse("{", Measurement::ReadOne).unwrap_err().contains("not understood"));
        assert!(parse("", Measurement::ReadOne).is_err() && parse("{\"jobs\": []}", Measurement::ReadOne).is_err());
    }

    #[test]
    fn what_writes_ends_when_the_file_is_written_once() {
        for measurement in Measurement::ALL {
            let arguments = measurement.arguments(1 << 20, Duration::from_millis(250));
            let is_repeated = arguments.iter().any(|argument| argument == "--time_based");
            assert_ne!(is_repeated, measurement.writes(), "{measurement:?}");
            assert!(arguments.iter().any(|argument| argument == "--runtime=250ms"));
        }
    }
}
