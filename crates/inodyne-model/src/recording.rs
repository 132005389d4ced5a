//! The saved file: zstd-compressed JSON, versioned, written whole or not at all.
//!
//! `FORMAT.md` documents every field. A reader takes its own version and older ones, and refuses newer ones.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::comparison::{Comparison, DEFAULT_MARGIN, LedgerDifference, Side};
use crate::file;
use crate::finding::Finding;
use crate::host::Host;
use crate::place::Place;
use crate::run::{CacheState, Command, Run};
use crate::statistics::RunStatistics;
use crate::study::Study;
use crate::trace::Trace;

/// The version that this program writes, and the newest that it reads.
pub const VERSION: u32 = 1;
const FAMILY: &str = "inodyne/";
const COMPRESSION_LEVEL: i32 = 3;

/// Everything known of one invocation.
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
    pub commands: Vec<Command>,
    /// What ran when: indices into `runs`, in the order of time.
    pub order: Vec<Ordered>,
    /// The runs.
    pub runs: Vec<Run>,
    /// The traces of the traced runs.
    pub traces: Vec<Trace>,
    /// The diagnoses. Derived from the traces.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Differences below this part count as none, for whoever asked.
    #[serde(default = "default_margin")]
    pub margin: f64,
    /// The runs of every case. Derived.
    #[serde(default)]
    pub statistics: Vec<RunStatistics>,
    /// Cases held against each other. Derived; empty where there is only one.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// Where their differences lie. Derived.
    #[serde(default)]
    pub ledger_differences: Vec<LedgerDifference>,
    /// Where it is a study: its parts, and what was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Study>,
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
    /// State of the caches before.
    pub cache: CacheState,
    /// Whether it was traced.
    pub traced: bool,
}

/// Why a recording could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not a recording, or damaged.
    #[error("{}: not a readable recording: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It was written by a newer program.
    #[error("{}: written in format {found}, this program reads up to {FAMILY}{VERSION}: use a newer inodyne", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: String,
    },
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
        }
    }

    /// Adds a run at the end of the order.
    pub fn push_run(&mut self, run: Run) {
        let Run { block, cache, traced, .. } = run;
        self.order.push(Ordered { run: self.runs.len(), block, cache, traced });
        self.runs.push(run);
    }

    /// The wall-clock times of the untraced runs of a command in a place, in rising order.
    pub fn untraced_walls(&self, place: usize, command: usize, cache: CacheState) -> Vec<Nanos> {
        let same = |run: &&Run| !run.traced && (run.place, run.command, run.cache) == (place, command, cache);
        let mut walls: Vec<Nanos> = self.runs.iter().filter(same).map(|run| run.wall_ns).collect();
        walls.sort_unstable();
        walls
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// The file cannot be read, is no recording, is damaged or truncated, or was written by a newer version.
    pub fn load(path: &Path) -> Result<Recording, RecordingError> {
        let io = |source| RecordingError::Io { path: path.to_owned(), source };
        let corrupt = |reason: String| RecordingError::Corrupt { path: path.to_owned(), reason };
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.is_dir() {
            return Err(io(std::io::Error::from(std::io::ErrorKind::IsADirectory)));
        }
        let mut text = Vec::new();
        let mut decoder = zstd::Decoder::new(BufReader::new(file)).map_err(io)?;
        decoder.read_to_end(&mut text).map_err(|e| corrupt(e.to_string()))?;
        let header: Header = serde_json::from_slice(&text).map_err(|e| corrupt(e.to_string()))?;
        let version = header.schema.strip_prefix(FAMILY).and_then(|v| v.parse::<u32>().ok());
        match version {
            Some(v) if v > VERSION => Err(RecordingError::Newer { path: path.to_owned(), found: header.schema }),
            Some(_) => {
                let recording: Recording = serde_json::from_slice(&text).map_err(|e| corrupt(e.to_string()))?;
                recording.check().map_err(corrupt)?;
                Ok(recording)
            }
            None => Err(corrupt(format!("unknown schema {:?}", header.schema))),
        }
    }

    /// Writes the recording, whole or not at all.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), RecordingError> {
        let io = |source| RecordingError::Io { path: path.to_owned(), source };
        file::write_whole(path, |out| {
            let mut encoder = zstd::Encoder::new(out, COMPRESSION_LEVEL)?;
            serde_json::to_writer(&mut encoder, self)?;
            encoder.finish().map(|_| ())
        })
        .map_err(io)
    }

    /// Every index must point at something: a damaged file must not make a report panic.
    fn check(&self) -> Result<(), String> {
        let known = |place: usize, command: usize| place < self.places.len() && command < self.commands.len();
        let runs = self.runs.iter().all(|r| known(r.place, r.command));
        let traces = self.traces.iter().all(|t| known(t.place, t.command));
        let findings = self.findings.iter().all(|f| known(f.place, f.command) && f.trace < self.traces.len());
        let order = self.order.iter().all(|o| o.run < self.runs.len());
        let side = |side: Side| known(side.place, side.command);
        let comparisons = self.comparisons.iter().all(|c| side(c.a) && side(c.b));
        let differences = self.ledger_differences.iter().all(|d| side(d.a) && side(d.b));
        let statistics = self.statistics.iter().all(|s| {
            let durable =
                s.durable.iter().flat_map(|d| d.outliers.iter().copied().chain(d.change_point.map(|c| c.run)));
            let to_end = s.outliers.iter().copied().chain(s.change_point.map(|change| change.run));
            let mut named = to_end.chain(durable);
            known(s.place, s.command) && named.all(|run| run < self.runs.len())
        });
        let study = self.study.iter().flat_map(|study| &study.parts).all(|part| {
            let places = part.places.iter().all(|place| *place < self.places.len());
            places && part.commands.iter().all(|command| *command < self.commands.len())
        });
        if runs && traces && findings && order && comparisons && differences && statistics && study {
            Ok(())
        } else {
            Err("an index points at nothing".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("inodyne-model-{}-{name}", std::process::id()))
    }

    fn written(name: &str, schema: &str) -> PathBuf {
        let path = temporary(name);
        let mut recording = Recording::new("0.0.0", 0, Host::default());
        recording.schema = schema.to_owned();
        recording.save(&path).unwrap();
        path
    }

    #[test]
    fn reads_what_it_wrote() {
        let path = written("same", "inodyne/1");
        assert_eq!(Recording::load(&path).unwrap(), Recording::new("0.0.0", 0, Host::default()));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn refuses_a_newer_version_and_says_what_to_do() {
        let path = written("newer", "inodyne/2");
        let message = Recording::load(&path).unwrap_err().to_string();
        assert!(message.contains("inodyne/2") && message.contains("use a newer inodyne"), "{message}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn refuses_every_truncation() {
        let path = written("whole", "inodyne/1");
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(Recording::load(&path), Err(RecordingError::Corrupt { .. })), "{length} bytes were taken");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn refuses_an_index_that_points_at_nothing() {
        let path = temporary("index");
        let mut recording = Recording::new("0.0.0", 0, Host::default());
        recording.order.push(Ordered { run: 7, block: 0, cache: CacheState::AsIs, traced: false });
        recording.save(&path).unwrap();
        assert!(matches!(Recording::load(&path), Err(RecordingError::Corrupt { .. })));
        std::fs::remove_file(path).unwrap();
    }
}
