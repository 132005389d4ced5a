//! What a place holds before the first run: a tree made from numbers, a copy of a directory, an unpacked archive, or what a script
//! of the user's makes.
//!
//! The same description gives the same files in every place. All of it belongs to the place's owner, whoever owned the
//! original: that user's command must be able to work with it.

use std::{
    collections::HashSet,
    fmt, fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    str::FromStr,
};

use inodyne_tree::{MakeOptions, TreeError, TreeSpec};
use rustix::fs::{AtFlags, FileType, Gid, Mode, Uid, chmodat, chownat};

use crate::{LabError, Owner, archive, copy, script, walk::walk};

/// Data as described by the user: `tree:dirs=1000,files=30,bytes=1`, `script:PATH`, a directory, or an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataSpec {
    /// Made from numbers; [`TreeSpec`] says exactly which tree.
    Tree(TreeSpec),
    /// Made by a script of the user's, which runs in the place as its owner.
    Script {
        /// The script.
        path: PathBuf,
        /// What it finds in `INODYNE_SEED`.
        seed: u64,
    },
    /// Copied from a directory or unpacked from an archive: which of them shows when it is used.
    From(PathBuf),
}

/// What was put into a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filled {
    /// Files; each name of a file with several counts.
    pub files: u64,
    /// Directories, without the root.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Bytes in files; those of a file with several names count once.
    pub bytes: u64,
    /// Entries of kinds that are not copied: devices, sockets, pipes. Never silently: tell the user.
    pub left_out: Vec<PathBuf>,
}

const TREE: &str = "tree:";
const SCRIPT: &str = "script:";
const SEED: &str = ",seed=";

impl FromStr for DataSpec {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let wrong = |problem: String| LabError::DataSyntax { text: text.into(), problem };
        if let Some(script) = text.strip_prefix(SCRIPT) {
            let (path, seed) = match script.rsplit_once(SEED) {
                Some((path, seed)) => (path, seed.parse().map_err(|_| wrong(format!("seed={seed} is not a number")))?),
                None => (script, 0),
            };
            return match path.is_empty() {
                true => Err(wrong("names no script: write script:PATH".into())),
                false => Ok(Self::Script { path: path.into(), seed }),
            };
        }
        match text.strip_prefix(TREE) {
            Some(tree) => Ok(Self::Tree(tree.parse().map_err(|error: TreeError| wrong(error.to_string()))?)),
            None if text.is_empty() => Err(wrong("is empty: give tree:…, script:…, a directory or an archive".into())),
            None => Ok(Self::From(text.into())),
        }
    }
}

impl fmt::Display for DataSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(tree) => write!(f, "{TREE}{tree}"),
            Self::Script { path, seed } => {
                let path = path.display().to_string();
                // Where none is given, zero is meant; it is still written if the path would seem to give one.
                let given = if *seed != 0 || path.contains(SEED) { format!("{SEED}{seed}") } else { String::new() };
                write!(f, "{SCRIPT}{path}{given}")
            }
            Self::From(path) => write!(f, "{}", path.display()),
        }
    }
}

impl DataSpec {
    /// Puts the data into `directory`, which must be empty.
    ///
    /// Nothing is flushed. [`crate::MountedPlace::fill`] does that too, and knows what to say when the place is full.
    pub fn fill(&self, directory: &Path, owner: Owner) -> Result<Filled, LabError> {
        let left_out = match self {
            Self::Tree(spec) => {
                let options = MakeOptions { threads: None, is_unwanted: inodyne_launch::is_asked_to_end };
                inodyne_tree::make_with(spec, directory, options).map_err(|error| match error {
                    TreeError::Unwanted => LabError::Interrupted,
                    error => error.into(),
                })?;
                Vec::new()
            }
            Self::Script { path, seed } => {
                script::run(path, *seed, directory, owner)?;
                Vec::new()
            }
            Self::From(source) => {
                let metadata = fs::metadata(source).map_err(|error| match error.kind() {
                    std::io::ErrorKind::NotFound => LabError::DataSyntax {
                        text: source.display().to_string(),
                        problem: "does not exist: give tree:dirs=…,files=…, a directory or a tar archive".into(),
                    },
                    _ => LabError::io("look at", source, error),
                })?;
                if metadata.is_dir() { copy::copy(source, directory)? } else { archive::unpack(source, directory)? }
            }
        };
        give(directory, owner, Filled { left_out, ..Filled::default() })
    }
}

/// Gives `directory` and all below it to `owner`, and counts what is there.
fn give(directory: &Path, owner: Owner, mut filled: Filled) -> Result<Filled, LabError> {
    chown(directory, Some(owner.uid), Some(owner.gid)).map_err(|error| LabError::io("hand over", directory, error))?;
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    let mut linked = HashSet::new();
    walk(directory, &mut |entry| {
        match entry.file_type() {
            FileType::Directory => filled.directories += 1,
            FileType::Symlink => filled.symlinks += 1,
            _ => {
                filled.files += 1;
                if entry.stat.stx_nlink == 1 || linked.insert(entry.stat.stx_ino) {
                    filled.bytes += entry.stat.stx_size;
                }
            }
        }
        if (entry.stat.stx_uid, entry.stat.stx_gid) == (owner.uid, owner.gid) {
            return Ok(());
        }
        let failed = |errno| LabError::io("hand over", directory.join(entry.path), errno);
        chownat(entry.parent, entry.name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        // The kernel clears the set-user-id and set-group-id bits of a file whose owner changes.
        if entry.file_type() == FileType::RegularFile && entry.mode().intersects(Mode::SUID | Mode::SGID) {
            chmodat(entry.parent, entry.name, entry.mode(), AtFlags::empty()).map_err(failed)?;
        }
        Ok(())
    })?;
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in [
            "tree:dirs=1000,fan=100,files=30,bytes=1,seed=0",
            "/usr/share",
            "linux.tar.xz",
            "./tree:x",
            "script:./make, it",
            "script:x,seed=7",
        ] {
            let data: DataSpec = text.parse().unwrap();
            assert_eq!(data.to_string(), text);
            assert_eq!(data.to_string().parse::<DataSpec>().unwrap(), data);
        }
        for (text, says) in [
            ("", "is empty"),
            ("script:", "names no script"),
            ("script:x,seed=y", "seed=y is not a number"),
            ("tree:", "give either"),
            ("tree:colour=1", "no key 'colour'"),
        ] {
            let error = text.parse::<DataSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
