//! A directory of recordings made one after another, as kept by `attach --every`: what the files are called, which of them are removed,
//! and which one is meant by a time.
//!
//! A file is named after the beginning of its window, `2026-11-23T00-30-05Z.inodyne`. Nothing else in the directory is touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use inodyne_lab::Size;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How file names are made from times, in UTC.
const NAME: &str = "%Y-%m-%dT%H-%M-%SZ.inodyne";

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// What is no older than this.
    For(Duration),
    /// The newest one, and as many before it as are together no larger than this.
    Bytes(Size),
}

impl std::str::FromStr for Keep {
    type Err = String;

    /// `24h` or `500M`.
    fn from_str(text: &str) -> Result<Keep, String> {
        // Minutes, as in all other times, and not megabytes.
        let time = crate::options::time(text).map(Keep::For).ok();
        let kept = time.or_else(|| text.parse().map(Keep::Bytes).ok());
        // A number alone could be either.
        let kept = kept.filter(|_| !text.ends_with(|c: char| c.is_ascii_digit()));
        kept.ok_or_else(|| "write a time or a size: 24h, 90min, 500M".to_owned())
    }
}

/// The recordings in a directory.
#[derive(Debug)]
pub struct Ring {
    directory: PathBuf,
}

impl Ring {
    /// In this directory.
    pub fn new(directory: &Path) -> Ring {
        Ring { directory: directory.to_owned() }
    }

    /// Where the recording of a window that begins now belongs.
    pub fn next(&self) -> PathBuf {
        self.directory.join(Timestamp::now().strftime(NAME).to_string())
    }

    /// All of them, the oldest first.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn all(&self) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let began = entry.file_name().to_str().and_then(began);
            if let Some(began) = began.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file())) {
                all.push((began, entry.path()));
            }
        }
        all.sort();
        Ok(all)
    }

    /// Removes what should no longer be kept; the newest always stays.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed.
    pub fn trim(&self, keep: Keep) -> io::Result<()> {
        let mut all = self.all()?;
        all.pop();
        let mut bytes = 0u64;
        for (began, path) in all.into_iter().rev() {
            let is_kept = match keep {
                Keep::For(time) => {
                    Timestamp::now().duration_since(began)
                        <= SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
                }
                Keep::Bytes(most) => {
                    bytes += fs::metadata(&path)?.len();
                    bytes <= most.bytes()
                }
            };
            if !is_kept {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// The recording of the last window that began at this time or before it, or the newest without a time.
    ///
    /// # Errors
    /// In one line: that this is not a time, or that no recording is that early.
    pub fn at(&self, time: Option<&str>) -> Result<PathBuf, String> {
        let name = self.directory.display();
        let all = self.all().map_err(|error| format!("{name}: {error}"))?;
        let Some((first, _)) = all.first() else {
            return Err(format!(
                "{name}: the directory holds no recording of attach --every, called like 2026-11-23T00-30-05Z.inodyne"
            ));
        };
        let until = match time {
            Some(time) => meant(time, Timestamp::now(), &TimeZone::system())?,
            None => Timestamp::MAX,
        };
        let found = all.iter().rev().find(|(began, _)| *began <= until);
        found.map(|(_, path)| path.clone()).ok_or_else(|| {
            format!(
                "{name}: the first recording is of {}, which is later",
                first.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S")
            )
        })
    }
}

/// What a user means by a recording: a file; for a directory, the newest one in it, or `DIRECTORY@TIME`.
///
/// # Errors
/// There is none of that time, in one line.
pub fn file_of(operand: &Path) -> Result<PathBuf, String> {
    if operand.is_dir() {
        return Ring::new(operand).at(None);
    }
    let text = operand.to_str().filter(|_| !operand.exists());
    match text.and_then(|text| text.rsplit_once('@')) {
        Some((directory, time)) if Path::new(directory).is_dir() => Ring::new(Path::new(directory)).at(Some(time)),
        _ => Ok(operand.to_owned()),
    }
}

/// The beginning of a window, from the name of its file.
fn began(name: &str) -> Option<Timestamp> {
    let time = DateTime::strptime(NAME, name).ok()?;
    time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// `14:03` and `14:03:20` are today, or yesterday if that is still to come; `2026-11-22 14:03` is in the time zone of the machine;
/// `2026-11-22T14:03Z` is in its own.
fn meant(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    let local = |time: DateTime| time.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
    let today = || -> Option<Timestamp> {
        let time: Time = text.parse().ok()?;
        let date: Date = now.to_zoned(zone.clone()).date();
        let found = local(date.to_datetime(time))?;
        if found <= now { Some(found) } else { local(date.yesterday().ok()?.to_datetime(time)) }
    };
    // The time of day comes last: text with a date would be taken for one, too.
    let found = text.parse::<Timestamp>().ok().or_else(|| text.parse().ok().and_then(local)).or_else(today);
    found.ok_or_else(|| format!("'{text}' is not a time: write 14:03, 2026-11-22 14:03 or 2026-11-22T14:03Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_time_is_that_of_today_or_yesterday_or_of_its_date() {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let now = timestamp("2026-11-23T12:00:00Z");
        let says = |text: &str| meant(text, now, &zone);
        assert_eq!(says("12:59"), Ok(timestamp("2026-11-23T11:59:00Z")));
        assert_eq!(says("13:00:01"), Ok(timestamp("2026-11-22T12:00:01Z")));
        assert_eq!(says("2026-11-01 08:30"), Ok(timestamp("2026-11-01T07:30:00Z")));
        assert_eq!(says("2026-11-01T08:30Z"), Ok(timestamp("2026-11-01T08:30:00Z")));
        for wrong in ["", "25:00", "noon", "2026-13-01 00:00"] {
            assert!(says(wrong).is_err_and(|why| why.contains("is not a time")), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_called_so_is_found_and_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| fs::write(directory.path().join(name), [0; 1000]).expect("a file");
        let ring = Ring::new(directory.path());
        assert!(ring.at(None).is_err_and(|why| why.contains("no recording")));
        for name in [
            "2026-11-20T10-00-00Z.inodyne",
            "2026-11-20T11-00-00Z.inodyne",
            "2026-11-20T12-00-00Z.inodyne",
            "mine.inodyne",
        ] {
            file(name);
        }
        let name = |found: Result<PathBuf, String>| {
            found.map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        };
        assert_eq!(name(ring.at(None)).as_deref(), Ok("2026-11-20T12-00-00Z.inodyne"));
        assert_eq!(name(ring.at(Some("2026-11-20T11:59Z"))).as_deref(), Ok("2026-11-20T11-00-00Z.inodyne"));
        assert!(ring.at(Some("2026-11-20T09:59Z")).is_err_and(|why| why.contains("which is later")));
        let by_operand = file_of(&PathBuf::from(format!("{}@2026-11-20T10:00Z", directory.path().display())));
        assert_eq!(name(by_operand).as_deref(), Ok("2026-11-20T10-00-00Z.inodyne"));
        // The newest stays, whatever its size.
        ring.trim(Keep::Bytes("1500".parse().expect("a size"))).expect("trimmed");
        assert_eq!(ring.all().expect("read").len(), 2);
        ring.trim("1h".parse().expect("a time")).expect("trimmed");
        assert_eq!(name(ring.at(None)).as_deref(), Ok("2026-11-20T12-00-00Z.inodyne"));
        assert_eq!(fs::read_dir(directory.path()).expect("read").count(), 2, "the newest, and what is not ours");
        assert!("24".parse::<Keep>().is_err() && "soon".parse::<Keep>().is_err() && "90min".parse::<Keep>().is_ok());
        assert_eq!("30m".parse(), Ok(Keep::For(Duration::from_secs(1800))));
    }
}
