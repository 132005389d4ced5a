//! Tracing by strace, for users who may not load programs into the kernel. The command runs under it, and its log is read at the end.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use inodyne_launch::{LaunchError, LaunchSpec, Output, Stage, run_to_end};
use inodyne_model::trace::{Overhead, Trace};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use rustix::process::{Gid, Uid};

use crate::error::ExperimentError;

/// All descendants, the time of each call and how long it took; nothing about what strace attaches to.
const OPTIONS: [&str; 5] = ["-f", "-ttt", "-T", "-q", "-o"];
/// The log's descriptor has this number or a higher one, so that the command, which inherits it, gets the same numbers for its own
/// files as without strace.
const LEAST_DESCRIPTOR: i32 = 500;
/// What is traced to see what strace costs: this many reads and writes of a byte.
const CALIBRATION: &str = "count=2000";
/// How often that is done.
const CALIBRATIONS: u32 = 3;

/// A strace log in the making. It has no name, so nothing is left of it, however this ends.
pub(super) struct Strace {
    program: PathBuf,
    log: File,
    /// The same, for strace to inherit.
    inherited: OwnedFd,
}

impl Strace {
    /// Makes an empty log for strace at `program`, which will run as the user of the command.
    pub(super) fn new(program: &Path, spec: &LaunchSpec) -> Result<Strace, ExperimentError> {
        let failed = |source| ExperimentError::System { what: "make a log for strace", source };
        let log = tempfile::tempfile().map_err(failed)?;
        if let Some(user) = &spec.user {
            let owner = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
            rustix::fs::fchown(&log, Some(owner.0), Some(owner.1)).map_err(|errno| failed(errno.into()))?;
        }
        let number = fcntl(&log, FcntlArg::F_DUPFD(LEAST_DESCRIPTOR)).map_err(|errno| failed(errno.into()))?;
        // SAFETY: the descriptor was made just now, and nothing else knows of it.
        let inherited = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(Strace { program: program.to_owned(), log, inherited })
    }

    /// The command under strace, in the same circumstances. A script without `#!` is given to the shell, as `execvp` does and strace does
    /// not.
    ///
    /// # Errors
    /// There is no such command, or not what its first line names: strace itself would end with another code.
    pub(super) fn around(&self, spec: &LaunchSpec) -> Result<LaunchSpec, ExperimentError> {
        let command = spec.argv.first().map_or(OsStr::new(""), OsString::as_os_str);
        let directory = spec.directory.as_deref().unwrap_or(Path::new(""));
        // A relative path is relative to the directory in which the command will be.
        let file = match command.as_bytes().contains(&b'/') {
            true => directory.join(command).into_os_string(),
            false => command.to_owned(),
        };
        let not_started = |stage, errno: Errno| LaunchError::NotStarted {
            command: command.to_string_lossy().into_owned(),
            stage,
            errno: errno as i32,
        };
        let found =
            inodyne_launch::find(&file, path(spec).as_deref()).map_err(|errno| not_started(Stage::Execute, errno))?;
        let begin = beginning(&found);
        let interpreter = begin.as_deref().and_then(interpreter);
        if interpreter.is_some_and(|interpreter| matches!(directory.join(interpreter).try_exists(), Ok(false))) {
            return Err(not_started(Stage::Interpret, Errno::ENOENT).into());
        }
        let mut words = spec.argv.clone();
        if begin.is_some_and(|begin| is_for_a_shell(&begin)) {
            words.splice(..1, [OsString::from("/bin/sh"), found.into_os_string()]);
        }
        let log = format!("/proc/self/fd/{}", self.inherited.as_raw_fd());
        let own = [self.program.clone().into_os_string()].into_iter().chain(OPTIONS.map(OsString::from));
        let argv = own.chain([log.into(), "--".into()]).chain(words).collect();
        Ok(LaunchSpec { argv, ..spec.clone() })
    }

    /// The trace that the log gives, with what strace cost.
    pub(super) fn finish(mut self, ns_per_call: f64) -> Result<Trace, ExperimentError> {
        let failed = |source| ExperimentError::System { what: "read the log of strace", source };
        let mut bytes = Vec::new();
        self.log.rewind().and_then(|()| self.log.read_to_end(&mut bytes)).map_err(failed)?;
        let log = String::from_utf8_lossy(&bytes);
        let imported = inodyne_import::strace(&log, "", 0).map_err(|_| ExperimentError::NothingFromStrace)?;
        let trace = imported.recording.traces.into_iter().next().ok_or(ExperimentError::NothingFromStrace)?;
        Ok(Trace { overhead: Overhead { ns_per_call, ..trace.overhead }, ..trace })
    }
}

/// What strace at `program` adds to one of this user's calls, in nanoseconds: a program that does nothing but calls, with it and without;
/// the smallest of several results, since whatever else runs only adds to it. Zero where that cannot be measured.
pub(super) fn cost(program: &Path, spec: &LaunchSpec) -> f64 {
    let argv = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", CALIBRATION, "status=none"].map(OsString::from).to_vec();
    let plain = LaunchSpec { argv, output: Output::Discard, directory: Some("/".into()), ..spec.clone() };
    let measured = || {
        let strace = Strace::new(program, &plain).ok()?;
        let untraced = run_to_end(&plain).ok().filter(|ended| ended.exit.success())?;
        run_to_end(&strace.around(&plain).ok()?).ok().filter(|ended| ended.exit.success())?;
        let trace = strace.finish(0.0).ok()?;
        let more = trace.wall_ns.saturating_sub(untraced.wall_ns());
        Some(more.0 as f64 / trace.calls().max(1) as f64)
    };
    (0..CALIBRATIONS).filter_map(|_| measured()).min_by(f64::total_cmp).unwrap_or_default()
}

/// The first line of a script is no longer than this (`BINPRM_BUF_SIZE` in include/uapi/linux/binfmts.h).
const LONGEST_LINE: u64 = 256;

/// How a file begins; none where that cannot be read.
fn beginning(file: &Path) -> Option<Vec<u8>> {
    // Opening anything else could wait for somebody.
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut begin = Vec::new();
    File::open(file).ok()?.take(LONGEST_LINE).read_to_end(&mut begin).ok()?;
    Some(begin)
}

/// What the first line of a script names to run it.
fn interpreter(begin: &[u8]) -> Option<&OsStr> {
    let line = begin.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t' | 0)).filter(|word| !word.is_empty());
    words.next().map(OsStr::from_bytes)
}

/// Whether the kernel does not know how to run what begins like this, and a shell may: it is text.
fn is_for_a_shell(begin: &[u8]) -> bool {
    interpreter(begin).is_none() && !begin.starts_with(b"\x7fELF") && !begin.contains(&0)
}

/// The command's PATH.
fn path(spec: &LaunchSpec) -> Option<OsString> {
    let given = spec.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    given.or_else(|| std::env::var_os("PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_at_its_beginning_what_runs_it() {
        let named = |begin: &[u8]| interpreter(begin).and_then(OsStr::to_str).map(str::to_owned);
        for (begin, interpreter, shell) in [
            (&b"#!/bin/sh -e\necho"[..], Some("/bin/sh"), false),
            (b"#! \t/usr/bin/env python3", Some("/usr/bin/env"), false),
            (b"#!/bin/sh\r\n", Some("/bin/sh\r"), false),
            (b"#!\n", None, true),
            (b"\x7fELF\x02\x01\x01", None, false),
            (b"MZ\x90\0", None, false),
            (b"echo text\n", None, true),
            (b"", None, true),
        ] {
            assert_eq!((named(begin).as_deref(), is_for_a_shell(begin)), (interpreter, shell), "{begin:?}");
        }
        assert_eq!([beginning(Path::new("/")), beginning(Path::new("/no/such/file"))], [None, None]);
    }
}
