//! What a file system looks like that has been in use: its free space in pieces, and little of it.
//!
//! Before any data is put in, files of random lengths are made until the file system is full to a given share; then half of
//! them, chosen at random, are deleted. That is a round, and there may be several. If it is to be full in the end, it is then
//! filled to that share for good. So the data that comes afterwards lies where there is room left, as in a file system
//! that was not made yesterday. Once the data is in, enough of the files are deleted to bring it back to that share.
//!
//! The files lie beside the directory that becomes the place, where no command walks. Their blocks are allocated but not
//! written (fallocate), where the file system can do that: what matters is what is free, and not what is in the rest.
//! All random choices follow from one seed, so that every place gets the same files.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use inodyne_model::{place::Wear as Record, random::Random};
use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    io::Errno,
};

use crate::{LabError, error::still_wanted, mount};

/// How used it is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wear {
    /// Rounds.
    pub age: Option<u32>,
    /// How full in the end, in percent.
    pub full: Option<u8>,
}

impl Wear {
    /// Whether it is to be as new.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// How full it gets in each round, unless another share is asked for.
const USUAL_PERCENT: u8 = 80;

/// Lengths are powers of two between these, in bytes, each as likely as the others: small files are many, large ones have
/// most of the bytes.
const LENGTHS: std::ops::RangeInclusive<u32> = 12..=22;

/// Files in one directory.
const IN_DIRECTORY: u64 = 1000;

const SEED: u64 = 1;

/// The files that make a file system look used.
#[derive(Debug)]
pub(crate) struct Filler {
    directory: PathBuf,
    wear: Wear,
    random: Random,
    /// Name and length of those that are there.
    files: Vec<(u64, u64)>,
    made: u64,
}

impl Filler {
    /// Makes them in `directory`, which is empty.
    pub fn make(directory: &Path, wear: Wear) -> Result<Self, LabError> {
        let mut filler =
            Self { directory: directory.into(), wear, random: Random::seeded(SEED), files: Vec::new(), made: 0 };
        for _ in 0..wear.age.unwrap_or(0) {
            filler.grow(wear.full.unwrap_or(USUAL_PERCENT))?;
            filler.halve()?;
        }
        if let Some(percent) = wear.full {
            let reached = filler.grow(percent)?;
            if reached + 1 < percent {
                return Err(LabError::NotFull { wanted: percent, reached });
            }
        }
        Ok(filler)
    }

    /// Deletes as many files, chosen at random, as exceed the share.
    pub fn trim(&mut self) -> Result<(), LabError> {
        let Some(percent) = self.wear.full else { return Ok(()) };
        mount::sync(&self.directory)?;
        let room = Room::of(&self.directory)?;
        let mut excess = room.used.saturating_sub(room.share(percent));
        while excess > 0 && !self.files.is_empty() {
            let at = self.random.below(self.files.len());
            let (name, length) = self.files.swap_remove(at);
            self.remove(name)?;
            excess = excess.saturating_sub(length);
        }
        mount::sync(&self.directory)?;
        // XFS gives deleted space back a little later.
        for _ in 0..200 {
            if Room::of(&self.directory)?.used <= room.share(percent) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// What goes into the recording; `place` is any directory of the file system.
    pub fn record(&self, place: &Path) -> Result<Record, LabError> {
        Ok(Record {
            rounds: self.wear.age.unwrap_or(0),
            seed: SEED,
            files_made: self.made,
            files_left: self.files.len() as u64,
            bytes_left: self.files.iter().map(|(_, length)| length).sum(),
            used_percent: Room::of(place)?.percent(),
        })
    }

    /// Makes files until the file system is full to this share, or has no room at all; returns how full it is.
    fn grow(&mut self, percent: u8) -> Result<u8, LabError> {
        // What was deleted may be given back only now.
        mount::sync(&self.directory)?;
        let mut most = u64::MAX;
        loop {
            let room = Room::of(&self.directory)?;
            let missing = room.share(percent).saturating_sub(room.used);
            if missing < 1 << LENGTHS.start() || most < 1 << LENGTHS.start() {
                mount::sync(&self.directory)?;
                return Ok(Room::of(&self.directory)?.percent());
            }
            // The room is looked up again as soon as that could matter.
            let mut planned = 0;
            while planned <= missing / 2 {
                let bits = LENGTHS.start() + self.random.below((LENGTHS.end() - LENGTHS.start() + 1) as usize) as u32;
                let length = (1 << bits).min(missing).min(most);
                match self.add(length) {
                    Ok(()) => planned += length,
                    Err(error) if error.is_full() => {
                        most = length / 2;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Deletes each with even odds.
    fn halve(&mut self) -> Result<(), LabError> {
        let random = &mut self.random;
        let (kept, deleted): (Vec<_>, Vec<_>) = self.files.drain(..).partition(|_| random.next_u64() & 1 == 0);
        self.files = kept;
        deleted.iter().try_for_each(|(name, _)| self.remove(*name))
    }

    fn add(&mut self, length: u64) -> Result<(), LabError> {
        still_wanted()?;
        let name = self.made;
        let path = self.path(name);
        let failed = |error: std::io::Error| LabError::io("write", &path, error);
        if name.is_multiple_of(IN_DIRECTORY) {
            let directory = path.parent().unwrap_or(&self.directory);
            fs::create_dir(directory).map_err(|error| LabError::io("make directory", directory, error))?;
        }
        let file = File::create(&path).map_err(failed)?;
        let added = match fallocate(&file, FallocateFlags::empty(), 0, length) {
            Err(Errno::OPNOTSUPP) => write(&file, length),
            result => result.map_err(Into::into),
        };
        // Even where there was no room its name is used up: the next one belongs to another file.
        self.made += 1;
        if let Err(error) = added {
            let _ = fs::remove_file(&path);
            return Err(failed(error));
        }
        self.files.push((name, length));
        Ok(())
    }

    fn remove(&self, name: u64) -> Result<(), LabError> {
        still_wanted()?;
        let path = self.path(name);
        fs::remove_file(&path).map_err(|error| LabError::io("remove", path, error))
    }

    fn path(&self, name: u64) -> PathBuf {
        self.directory.join((name / IN_DIRECTORY).to_string()).join(name.to_string())
    }
}

/// For file systems that cannot allocate without writing.
fn write(mut file: &File, mut length: u64) -> std::io::Result<()> {
    let piece = vec![0xa5; 1 << 20];
    while length > 0 {
        let now = length.min(piece.len() as u64);
        file.write_all(&piece[..now as usize])?;
        length -= now;
    }
    Ok(())
}

/// How much there is, and how much of it is in use, in bytes.
struct Room {
    all: u64,
    used: u64,
}

impl Room {
    fn of(directory: &Path) -> Result<Self, LabError> {
        let stat = statvfs(directory).map_err(|errno| LabError::io("inspect", directory, errno))?;
        let all = stat.f_blocks.saturating_mul(stat.f_frsize);
        Ok(Self { all, used: all.saturating_sub(stat.f_bfree.saturating_mul(stat.f_frsize)) })
    }

    fn share(&self, percent: u8) -> u64 {
        self.all / 100 * u64::from(percent)
    }

    fn percent(&self) -> u8 {
        (self.used as f64 / self.all.max(1) as f64 * 100.0).round() as u8
    }
}
