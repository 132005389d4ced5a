//! What `rm` says, in GNU rm's words where it has them.
//!
//! Threads report here while they work, so every message is one write of a whole line. If stdout cannot be written, that is an error,
//! reported at the end; if nobody reads it any more, that is a stop, as the signal for it would be.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind, Write},
    os::unix::ffi::OsStrExt,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use inodyne_tree::{Failure, Observer, Reason, Removed};
use rustix::io::Errno;

use super::{
    options::Options,
    progress,
    quote::{locale_is_utf8, quote},
    signals,
};

/// The name that messages begin with: scripts rely on it.
pub const PROGRAM: &str = "rm";

/// Prints, and counts what failed.
pub struct Messages {
    utf8: bool,
    verbose: bool,
    dry_run: bool,
    ignore_missing: bool,
    errors: AtomicU64,
    /// Why not all of stdout was written.
    unwritten: OnceLock<io::Error>,
}

impl Messages {
    pub fn new(options: &Options) -> Self {
        Self {
            utf8: locale_is_utf8(),
            // With --json, the JSON must be all that is printed.
            verbose: options.verbose && !options.json,
            dry_run: options.dry_run,
            ignore_missing: options.ignore_missing,
            errors: AtomicU64::new(0),
            unwritten: OnceLock::new(),
        }
    }

    /// How much could not be removed so far.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    pub fn quote(&self, name: impl AsRef<OsStr>) -> String {
        quote(name.as_ref().as_bytes(), self.utf8)
    }

    /// An error of any kind: the exit code becomes 1.
    pub fn error(&self, text: &str) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.note(text);
    }

    /// A line on stderr that is not an error.
    pub fn note(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(format!("{}{PROGRAM}: {text}\n", progress::wiped(&stderr)).as_bytes());
    }

    /// Prints on stdout.
    pub fn print(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(format!("{}{text}", progress::wiped(&stdout)).as_bytes()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => signals::reader_is_gone(),
            Err(error) => _ = self.unwritten.set(error),
            Ok(()) => {}
        }
    }

    /// Reports what could not be printed.
    pub fn close(&self) {
        if let Some(error) = self.unwritten.get() {
            self.error(&format!("write error: {}", text_of(Errno::from_io_error(error).unwrap_or(Errno::IO))));
        }
    }

    /// An operand, or something below it, stays; nothing is reported about what was missing if that is to be ignored.
    pub fn cannot_remove(&self, path: &OsStr, errno: Errno) {
        // A name that the file system cannot hold counts as missing too, such as one with a colon on some file systems.
        let missing = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::ILSEQ);
        if !(self.ignore_missing && missing) {
            self.stays(path, errno);
        }
    }

    fn stays(&self, path: &OsStr, errno: Errno) {
        self.error(&format!("cannot remove {}: {}", self.quote(path), text_of(errno)));
    }

    pub fn other_device(&self, path: &OsStr) {
        self.error(&format!("skipping {}, since it's on a different device", self.quote(path)));
    }

    pub fn say_removed(&self, path: &OsStr, kind: Removed) {
        if self.verbose {
            let verb = if self.dry_run { "would remove" } else { "removed" };
            let kind = if kind == Removed::Directory { "directory " } else { "" };
            self.print(&format!("{verb} {kind}{}\n", self.quote(path)));
        }
    }
}

impl Observer for Messages {
    fn failed(&self, failure: &Failure<'_>) {
        match failure.reason {
            Reason::Refused(errno @ Errno::NOENT) => self.cannot_remove(failure.path, errno),
            // It was found, so it is there: by whatever words the kernel or a file server refuses it, it stays, and all above it too.
            Reason::Refused(errno) | Reason::Unread(errno) => self.stays(failure.path, errno),
            Reason::OtherDevice => self.other_device(failure.path),
        }
    }

    fn removed(&self, path: &OsStr, kind: Removed) {
        self.say_removed(path, kind);
    }

    fn wants_removed(&self) -> bool {
        self.verbose
    }
}

/// The C library's words for an error, without the number that Rust adds.
pub fn text_of(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::options::{Parsed, parse};
    use super::*;

    /// CIFS refuses names with a backslash like that, vfat those that it cannot write.
    #[test]
    fn what_was_found_and_stays_is_an_error_even_with_force() {
        let Parsed::Remove(options) = parse(["-rf".into(), "tree".into()]) else { panic!("a mistake") };
        let messages = Messages::new(&options);
        let path = OsStr::new("tree/file");
        for (at, errno) in [Errno::INVAL, Errno::ILSEQ, Errno::NOTDIR].into_iter().enumerate() {
            messages.cannot_remove(OsStr::new("operand"), errno);
            messages.failed(&Failure { path, reason: Reason::Refused(errno) });
            assert_eq!(messages.errors(), at as u64 + 1, "{errno:?}");
        }
        messages.failed(&Failure { path, reason: Reason::Refused(Errno::NOENT) });
        assert_eq!(messages.errors(), 3);
    }
}
