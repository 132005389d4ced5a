//! What a saved file holds: zstd-compressed JSON, versioned. Where the bytes come from and go to is up to others.
//!
//! `FORMAT.md` documents every field. A reader takes its own version and older ones, and refuses newer ones.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::case::{CaseKey, CasePair};
use crate::command::CommandSpec;
use crate::comparison::{Comparison, DEFAULT_MARGIN, LedgerDifference};
use crate::finding::Finding;
use crate::host::Host;
use crate::place::Place;
use crate::run::{CacheState, Run};
use crate::statistics::RunStatistics;
use crate::study::Study;
use crate::trace::Trace;
use crate::tuning::Tuning;

/// The version that this program writes, and the newest that it reads.
pub const VERSION: u32 = 1;
const FAMILY: &str = "inodyne/";
const COMPRESSION_LEVEL: i32 = 3;

/// Everything known about one invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// `inodyne/1`.
    pub schema: String,
    /// When it was made: seconds since 1970, UTC.
    pub created_unix_s: u64,
    /// The version of the program that made it.
    pub program_version: String,
    /// The machine.
    pub host: Host,
    /// The places.
    pub places: Vec<Place>,
    /// The commands.
    pub commands: Vec<CommandSpec>,
    /// What ran when: indices into `runs`, in chronological order.
    pub order: Vec<Ordered>,
    /// The runs.
    pub runs: Vec<Run>,
    /// The traces of the traced runs.
    pub traces: Vec<Trace>,
    /// The diagnoses. Derived from the traces.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Differences below this fraction count as none, for whoever asked.
    #[serde(default = "default_margin")]
    pub margin: f64,
    /// The runs of every case. Derived.
    #[serde(default)]
    pub statistics: Vec<RunStatistics>,
    /// Cases compared with each other. Derived; empty where there is only one.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// Where their differences lie. Derived.
    #[serde(default)]
    pub ledger_differences: Vec<LedgerDifference>,
    /// Where it is a study: its parts, and what was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Study>,
    /// Where settings were tried: which, and what each came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
}

fn default_margin() -> f64 {
    DEFAULT_MARGIN
}

/// One step of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// Index into the recording's runs.
    pub run: usize,
    /// Which block of the schedule it belongs to.
    pub block: u32,
    /// State of the caches beforehand.
    pub cache: CacheState,
    /// Whether it was traced.
    pub traced: bool,
}

/// Why bytes are not a recording, or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The reader or the writer failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is not a recording, or is damaged.
    #[error("not a readable recording: {0}")]
    Corrupt(String),
    /// It expands to more than the reader allows.
    #[error("not read: it expands to more than {limit_bytes} bytes")]
    TooLarge {
        /// Bytes that were allowed.
        limit_bytes: u64,
    },
    /// It was written by a newer program.
    #[error("written in format {0}, this program reads up to {FAMILY}{VERSION}: use a newer inodyne")]
    Newer(String),
}

/// The part of the file that decides whether the rest can be read.
#[derive(Deserialize)]
struct Header {
    schema: String,
}

impl Recording {
    /// An empty recording of this version.
    pub fn new(program_version: &str, created_unix_s: u64, host: Host) -> Recording {
        Recording {
            schema: format!("{FAMILY}{VERSION}"),
            created_unix_s,
            program_version: program_version.to_owned(),
            host,
            places: Vec::new(),
            commands: Vec::new(),
            order: Vec::new(),
            runs: Vec::new(),
            traces: Vec::new(),
            findings: Vec::new(),
            margin: DEFAULT_MARGIN,
            statistics: Vec::new(),
            comparisons: Vec::new(),
            ledger_differences: Vec::new(),
            study: None,
            tuning: None,
        }
    }

    /// Adds a run at the end of the order.
    pub fn push_run(&mut self, run: Run) {
        let Run { block, cache, traced, .. } = run;
        self.order.push(Ordered { run: self.runs.len(), block, cache, traced });
        self.runs.push(run);
    }

    /// The wall-clock times of the untraced runs of a case, in ascending order.
    pub fn untraced_walls(&self, case: CaseKey) -> Vec<Nanos> {
        let same = |run: &&Run| !run.traced && run.key() == case;
        let mut walls: Vec<Nanos> = self.runs.iter().filter(same).map(|run| run.wall_ns).collect();
        walls.sort_unstable();
        walls
    }

    /// The run that was traced for one of the traces: they are added together. If a case has not as many of each, it is the first.
    pub fn run_of(&self, trace: usize) -> Option<&Run> {
        let key = self.traces.get(trace)?.key();
        let of_case = |trace: &&Trace| trace.key() == key;
        let runs: Vec<&Run> = self.runs.iter().filter(|run| run.traced && run.key() == key).collect();
        let is_each = runs.len() == self.traces.iter().filter(of_case).count();
        let number = self.traces[..trace].iter().filter(of_case).count();
        runs.get(if is_each { number } else { 0 }).copied()
    }

    /// The case that a finding is about: that of its trace.
    pub fn case_of(&self, finding: &Finding) -> CaseKey {
        let of_first = || CaseKey::new(finding.place, finding.command, CacheState::default());
        self.traces.get(finding.trace).map_or_else(of_first, Trace::key)
    }

    /// Reads a recording that expands to no more than `limit_bytes`.
    ///
    /// # Errors
    /// The reader fails, or what it gives is not a recording, is damaged, truncated or too large, or was written by a newer
    /// version.
    pub fn read(from: impl Read, limit_bytes: u64) -> Result<Recording, RecordingError> {
        let corrupt = |reason: &dyn std::fmt::Display| RecordingError::Corrupt(reason.to_string());
        let mut compressed = Vec::new();
        from.take(limit_bytes.saturating_add(1)).read_to_end(&mut compressed)?;
        let too_large =
            |bytes: u64| if bytes > limit_bytes { Err(RecordingError::TooLarge { limit_bytes }) } else { Ok(()) };
        // Data cut off here does not mean that the file is damaged.
        too_large(compressed.len() as u64)?;
        // Expanded once to learn its length: a buffer that grows as it is filled may take twice as much memory as the text.
        let expanded =
            || Ok::<_, std::io::Error>(zstd::Decoder::new(&compressed[..])?.take(limit_bytes.saturating_add(1)));
        let length = std::io::copy(&mut expanded()?, &mut std::io::sink()).map_err(|error| corrupt(&error))?;
        too_large(length)?;
        let mut text = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        expanded()?.read_to_end(&mut text).map_err(|error| corrupt(&error))?;
        drop(compressed);
        let header: Header = serde_json::from_slice(&text).map_err(|error| corrupt(&error))?;
        let version = header.schema.strip_prefix(FAMILY).and_then(|version| version.parse::<u32>().ok());
        match version {
            Some(version) if version > VERSION => Err(RecordingError::Newer(header.schema)),
            Some(_) => {
                let recording: Recording = serde_json::from_slice(&text).map_err(|error| corrupt(&error))?;
                recording.check().map_err(RecordingError::Corrupt)?;
                Ok(recording)
            }
            None => Err(RecordingError::Corrupt(format!("unknown schema {:?}", header.schema))),
        }
    }

    /// Writes the recording.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write(&self, to: impl Write) -> std::io::Result<()> {
        let mut encoder = zstd::Encoder::new(to, COMPRESSION_LEVEL)?;
        serde_json::to_writer(&mut encoder, self)?;
        encoder.finish().map(|_| ())
    }

    /// Every index must point at something: a damaged file must not make a report panic.
    fn check(&self) -> Result<(), String> {
        let known = |place: usize, command: usize| place < self.places.len() && command < self.commands.len();
        let runs = self.runs.iter().all(|r| known(r.place, r.command));
        let traces = self.traces.iter().all(|t| known(t.place, t.command));
        let findings = self.findings.iter().all(|f| known(f.place, f.command) && f.trace < self.traces.len());
        let order = self.order.iter().all(|o| o.run < self.runs.len());
        let both = |cases: CasePair| [cases.a, cases.b].iter().all(|case| known(case.place, case.command));
        let comparisons = self.comparisons.iter().all(|c| both(c.cases));
        let differences = self.ledger_differences.iter().all(|d| both(d.cases));
        let statistics = self.statistics.iter().all(|s| {
            let durable =
                s.durable.iter().flat_map(|d| d.outliers.iter().copied().chain(d.change_point.map(|c| c.run)));
            let to_end = s.outliers.iter().copied().chain(s.change_point.map(|change| change.run));
            let mut named = to_end.chain(durable);
            known(s.case.place, s.case.command) && named.all(|run| run < self.runs.len())
        });
        let study = self.study.iter().flat_map(|study| &study.parts).all(|part| {
            let places = part.places.iter().all(|place| *place < self.places.len());
            places && part.commands.iter().all(|command| *command < self.commands.len())
        });
        let tuning = self.tuning.iter().all(|tuning| tuning.best.is_none_or(|best| best < tuning.tried.len()));
        if runs && traces && findings && order && comparisons && differences && statistics && study && tuning {
            Ok(())
        } else {
            Err("an index points at nothing".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1 << 20;

    fn written(recording: &Recording) -> Vec<u8> {
        let mut bytes = Vec::new();
        recording.write(&mut bytes).unwrap();
        bytes
    }

    fn empty(schema: &str) -> Recording {
        Recording { schema: schema.to_owned(), ..Recording::new("0.0.0", 0, Host::default()) }
    }

    #[test]
    fn reads_what_it_wrote() {
        let recording = empty("inodyne/1");
        assert_eq!(Recording::read(&written(&recording)[..], LIMIT).unwrap(), recording);
    }

    #[test]
    fn each_trace_is_of_a_run_of_its_own() {
        let mut recording = crate::sample::empty();
        for wall in [200.0, 100.0, 101.0].map(crate::sample::ms) {
            recording.push_run(crate::sample::run(0, CacheState::Cold, false, wall));
            recording.push_run(crate::sample::run(0, CacheState::Cold, true, wall));
            recording.traces.push(crate::sample::find_trace(0, CacheState::Cold, true));
        }
        let walls = |recording: &Recording| [0, 1, 2].map(|trace| recording.run_of(trace).map(|run| run.wall_ns));
        assert_eq!(walls(&recording), [200.0, 100.0, 101.0].map(|wall| Some(crate::sample::ms(wall))));
        recording.traces.pop();
        assert_eq!(walls(&recording), [Some(crate::sample::ms(200.0)), Some(crate::sample::ms(200.0)), None]);
    }

    #[test]
    fn refuses_a_newer_version_and_says_what_to_do() {
        let message = Recording::read(&written(&empty("inodyne/2"))[..], LIMIT).unwrap_err().to_string();
        assert!(message.contains("inodyne/2") && message.contains("use a newer inodyne"), "{message}");
    }

    #[test]
    fn refuses_every_truncation() {
        let whole = written(&empty("inodyne/1"));
        for length in 0..whole.len() {
            let read = Recording::read(&whole[..length], LIMIT);
            assert!(matches!(read, Err(RecordingError::Corrupt(_))), "{length} bytes were taken");
        }
    }

    #[test]
    fn refuses_an_index_that_points_at_nothing() {
        let mut recording = empty("inodyne/1");
        recording.order.push(Ordered { run: 7, block: 0, cache: CacheState::AsIs, traced: false });
        assert!(matches!(Recording::read(&written(&recording)[..], LIMIT), Err(RecordingError::Corrupt(_))));
    }

    #[test]
    fn refuses_what_expands_beyond_the_limit_without_expanding_it() {
        let bomb = zstd::encode_all(std::io::repeat(b' ').take(64 << 20), 1).unwrap();
        assert!(bomb.len() < 1 << 16);
        assert!(matches!(Recording::read(&bomb[..], LIMIT), Err(RecordingError::TooLarge { limit_bytes: LIMIT })));
        let recording = written(&empty("inodyne/1"));
        let length = zstd::decode_all(&recording[..]).unwrap().len() as u64;
        assert!(
            Recording::read(&recording[..], length).is_ok() && Recording::read(&recording[..], length - 1).is_err()
        );
    }
}
