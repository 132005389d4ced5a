//! Recordings in files: what the pure model cannot do.
//!
//! A recording holds the arguments of every process that was seen, so only its owner can read it until that person
//! decides otherwise. It is written completely or not at all, and read only up to a size limit.
//!
//! | module | what it knows |
//! |---|---|
//! | [`mod@file`] | files that are either complete or not there at all |

pub mod file;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use inodyne_model::recording::{Recording, RecordingError};

use file::{Access, write_whole};

/// Bytes to which a recording may expand by default: 2 GiB.
pub const DEFAULT_LIMIT_BYTES: u64 = 2 << 30;

/// Why a recording could not be loaded or saved.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub source: RecordingError,
}

/// Loads a recording that expands to no more than `limit_bytes`.
///
/// # Errors
/// The file cannot be read, is not a recording, is damaged, truncated or too large, or was written by a newer version.
pub fn load(path: &Path, limit_bytes: u64) -> Result<Recording, FileError> {
    let failed = |source: RecordingError| FileError { path: path.to_owned(), source };
    let io = |error: std::io::Error| failed(error.into());
    let file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.is_dir() {
        return Err(io(std::io::Error::from(std::io::ErrorKind::IsADirectory)));
    }
    Recording::read(BufReader::new(file), limit_bytes).map_err(failed)
}

/// Saves a recording, completely or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn save(recording: &Recording, path: &Path) -> Result<(), FileError> {
    let written = write_whole(path, Access::Private, |out| recording.write(out));
    written.map_err(|error| FileError { path: path.to_owned(), source: error.into() })
}

/// Saves a recording somewhere it can be found when its own file could not be written: in the directory for temporary
/// files, under a name that is not taken yet. Returns where.
///
/// # Errors
/// It cannot be written there either.
pub fn save_elsewhere(recording: &Recording) -> Result<PathBuf, FileError> {
    let directory = std::env::temp_dir();
    let name = |number: u32| directory.join(format!("inodyne-{}-{number}.inodyne", std::process::id()));
    let path = (0..).map(name).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(0));
    save(recording, &path).map(|()| path)
}

#[cfg(test)]
mod tests {
    use inodyne_model::host::Host;

    use super::*;

    #[test]
    fn loads_what_it_saved_and_names_the_file_where_it_cannot() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.inodyne");
        let recording = Recording::new("0.0.0", 0, Host::default());
        save(&recording, &path).unwrap();
        assert_eq!(load(&path, DEFAULT_LIMIT_BYTES).unwrap(), recording);
        let message = load(&path, 1).unwrap_err().to_string();
        assert!(message.contains("a.inodyne") && message.contains("more than 1 bytes"), "{message}");
        assert!(load(scratch.path(), DEFAULT_LIMIT_BYTES).unwrap_err().to_string().contains("directory"));
    }
}
