//! Inputs: files that a study needs and that a script makes or fetches once, kept in the user's cache.
//!
//! Everything is done as the user that the commands run as, under the guard that commands have. A script runs in a new
//! directory, which gets its name only when the script has succeeded; the name has a hash of the script and its files, so
//! a changed script makes another input. What a killed one leaves behind is removed by the next.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use inodyne_launch::{Input as StandardInput, LaunchSpec, Output, User};

use super::built_in;
use super::file::{Input, Text};
use super::mistake::Mistake;
use crate::failure::{ExitStatus, Failure};

/// An input that can be made.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub name: String,
    /// File names and contents; the script first.
    files: Vec<(String, String)>,
}

/// Makes the input in `$1/making.PID` and renames it to `$2`; everything that the script prints goes to `$3`. Then come file names and
/// contents, the script first.
const MAKE: &str = include_str!("make-input.sh");

impl Recipe {
    /// Reads the script and its files: beside the study's file, or else those that come with the program.
    pub fn read(input: &Input, beside: Option<&Path>) -> Result<Recipe, Mistake> {
        let files = std::iter::once(&input.script).chain(&input.files);
        let files = files.map(|file| read(file, beside)).collect::<Result<Vec<_>, _>>()?;
        Ok(Recipe { name: input.name.get_ref().clone(), files })
    }

    /// Where it is, once made.
    pub fn directory(&self, cache: &Path) -> PathBuf {
        let parts = self.files.iter().flat_map(|(name, text)| [name.as_bytes(), &[0], text.as_bytes(), &[0]]);
        cache.join(format!("{}-{:016x}", self.name, hash(parts.flatten())))
    }

    /// Makes it, unless it is there.
    ///
    /// # Errors
    /// The script failed; the reason is the last line that it printed.
    pub fn make(&self, cache: &Path, user: Option<&User>) -> Result<(), Failure> {
        let directory = self.directory(cache);
        if directory.is_dir() {
            return Ok(());
        }
        let log = cache.join(format!("{}.log", self.name));
        if crate::report::shows_progress() {
            crate::say::say!("inodyne: making the input {}; what its script says is in {}", self.name, log.display());
        }
        let mut argv = vec!["/bin/sh".into(), "-c".into(), MAKE.into(), "inodyne".into()];
        argv.extend([cache, &directory, &log].map(|path| path.as_os_str().to_owned()));
        argv.extend(self.files.iter().flat_map(|(name, text)| [name.into(), text.into()]));
        let program = std::env::current_exe().unwrap_or_else(|_| "inodyne".into());
        let command = LaunchSpec {
            argv,
            directory: Some("/".into()),
            environment: vec![("INODYNE".into(), program.into())],
            user: user.cloned(),
            input: StandardInput::Nothing,
            output: Output::ToStderr,
        };
        let ended = inodyne_launch::run_to_end(&command)?;
        if ended.exit.success() {
            return Ok(());
        }
        let reason = last_line(&log, user).unwrap_or_else(|| format!("exit code {}", ended.exit.shell_code()));
        let name = &self.name;
        Err(Failure::new(
            ExitStatus::Lacking,
            format_args!("the input {name} cannot be made: {reason} (all of it: {})", log.display()),
        ))
    }
}

/// The directory for all inputs.
///
/// # Errors
/// Nothing says where it could be.
pub fn cache(user: Option<&User>) -> Result<PathBuf, Failure> {
    let own = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match user {
        // Our environment belongs to another user.
        Some(user) => Some(user.home.join(".cache")),
        None => own("XDG_CACHE_HOME").or_else(|| Some(own("HOME")?.join(".cache"))),
    };
    let lacking = || Failure::new(ExitStatus::Lacking, "no directory for what studies need: set XDG_CACHE_HOME");
    Ok(base.ok_or_else(lacking)?.join("inodyne"))
}

fn read(path: &Text, beside: Option<&Path>) -> Result<(String, String), Mistake> {
    let wrong = |problem: String| Mistake::of(path, format_args!("{}: {problem}", path.get_ref()));
    let name = Path::new(path.get_ref()).file_name().ok_or_else(|| wrong("is not a file".to_owned()))?;
    let text = match beside.map(|directory| fs::read_to_string(directory.join(path.get_ref()))) {
        Some(Ok(text)) => text,
        // Users' own studies may use what is built in.
        failed => match (built_in::file(path.get_ref()), failed) {
            (Some(text), _) => text.to_owned(),
            (None, Some(Err(error))) => return Err(wrong(error.to_string())),
            (None, _) => return Err(wrong("there is no such file".to_owned())),
        },
    };
    Ok((name.to_string_lossy().into_owned(), text))
}

/// FNV-1a with 64 bits (draft-eastlake-fnv): the same everywhere and always.
fn hash<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// How much of the end of a log is read.
const END: u64 = 4096;

/// The last non-blank line of a log. The directory is the user's: what is read as root must belong to that user.
fn last_line(log: &Path, user: Option<&User>) -> Option<String> {
    let mut file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(log).ok()?;
    let stat = fs::metadata(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    if !stat.is_file() || user.is_some_and(|user| user.uid != stat.uid()) {
        return None;
    }
    let mut bytes = Vec::new();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(stat.len().saturating_sub(END))).ok()?;
    file.take(END).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_draft() {
        assert_eq!(hash(b"".iter()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"foobar".iter()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn another_script_is_another_input() {
        let recipe = |text: &str| Recipe { name: "a".to_owned(), files: vec![("a.sh".to_owned(), text.to_owned())] };
        let directory = |text: &str| recipe(text).directory(Path::new("/cache"));
        assert!(directory("true").starts_with("/cache"));
        assert_eq!(directory("true"), directory("true"));
        assert_ne!(directory("true"), directory("false"));
    }
}
