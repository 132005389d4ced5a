//! Starting a command: held until it is released, as the user it belongs to, under a guard.
//!
//! ```text
//! inodyne ──fork──> guard ──clone──> command
//!    │   <───────── Ready ────────────  │   (arms itself, gives up privileges, waits; the guard stands still)
//!    │   ────────── Release ─────────>  │   execve
//!    │   <─ Ended ──   │   <── exit ──
//!    │   ── Leave ──>  │   (or Kill: everything that still runs)
//! ```
//!
//! The guard is the command's parent and adopts what the command leaves behind. Should inodyne die, even by SIGKILL,
//! the guard sees its channel close, kills the command with all its descendants and ends; with the last of them goes
//! the private mount namespace, and with it every file system made for the run.

mod child;
mod guard;
mod protocol;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use inodyne_model::Nanos;
use inodyne_model::run::{Exit, Usage};
use nix::sys::signal::Signal;
use rustix::process::{Pid, PidfdFlags};

pub use protocol::Stage;
use protocol::{Channel, Order, Report};

use crate::signals::inherited_mask;
use crate::user::User;

/// A command to start.
#[derive(Debug, Clone, Default)]
pub struct LaunchSpec {
    /// The words; the first is looked up in PATH unless it has a slash.
    pub argv: Vec<OsString>,
    /// Where to start it; none for the current directory.
    pub directory: Option<PathBuf>,
    /// Variables to set in its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Whose it is; none to change nothing.
    pub user: Option<User>,
    /// Where its standard input comes from.
    pub input: Input,
    /// Where its standard output goes.
    pub output: Output,
}

impl LaunchSpec {
    /// The open descriptors that input and output name, where they name any.
    fn named_files(&self) -> [Option<RawFd>; 2] {
        let input = match self.input {
            Input::File(file) => Some(file),
            Input::Inherit | Input::Nothing => None,
        };
        let output = match self.output {
            Output::File(file) | Output::BothToFile(file) => Some(file),
            Output::Inherit | Output::ToStderr | Output::Discard => None,
        };
        [input, output]
    }
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Input {
    /// Where ours does.
    #[default]
    Inherit,
    /// It is empty: otherwise the next command would miss what one has read.
    Nothing,
    /// This open descriptor, which must stay open until the command has started.
    File(RawFd),
}

/// Where a command's standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// Where ours goes.
    #[default]
    Inherit,
    /// To standard error: standard output belongs to the report.
    ToStderr,
    /// Nowhere, and its standard error with it.
    Discard,
    /// To this open descriptor, which must stay open until the command has started; its standard error where ours goes.
    File(RawFd),
    /// To this open descriptor, and its standard error with it.
    BothToFile(RawFd),
}

/// Why a command did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step before its first instruction failed.
    #[error("{command}: {}", stage.explain(*errno))]
    NotStarted {
        /// The command's first word.
        command: String,
        /// Which step.
        stage: Stage,
        /// The error's number.
        errno: i32,
    },
    /// A signal killed it before its first instruction.
    #[error("{command}: killed by signal {signal} before it began")]
    Killed {
        /// The command's first word.
        command: String,
        /// The signal's number.
        signal: i32,
    },
    /// The guard could not be made, or is gone.
    #[error("cannot start a guard process: {0}")]
    Guard(#[from] io::Error),
}

impl LaunchError {
    /// The exit code that shells and `env` use: 127 not found, 126 found but not executable, 128 plus the number of the signal
    /// that killed it.
    pub fn shell_code(&self) -> Option<u8> {
        match self {
            LaunchError::NotStarted { stage: Stage::Execute | Stage::Interpret, errno, .. } => {
                Some(if *errno == libc::ENOENT { 127 } else { 126 })
            }
            LaunchError::Killed { signal, .. } => u8::try_from(128 + signal).ok(),
            _ => None,
        }
    }
}

/// How a command ended and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// Its release, on the monotonic clock: just before its `execve`.
    pub released_ns: Nanos,
    /// Its end, as its parent saw it.
    pub ended_ns: Nanos,
    /// How it ended.
    pub exit: Exit,
    /// What it used.
    pub usage: Usage,
    /// Processes it left running.
    pub left_running: u32,
}

impl Ended {
    /// From release to end.
    pub fn wall_ns(&self) -> Nanos {
        self.ended_ns.saturating_sub(self.released_ns)
    }
}

/// What becomes of processes that outlive the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// They keep running.
    Leave,
    /// They are killed.
    Kill,
}

/// A started command. Dropping it kills the command and all its descendants.
pub struct Started {
    channel: Channel,
    guard: Pid,
    pid: Pid,
    command: OwnedFd,
    finished: bool,
}

/// Starts a command and holds it just before its `execve`. With `arm_program` (of `inodyne-trace`) it will be
/// traced from there on. Must be called while the process has one thread only: it forks.
///
/// # Errors
/// The command does not exist, is not executable, its directory cannot be entered, or a privilege is missing.
pub fn start(spec: &LaunchSpec, arm_program: Option<BorrowedFd<'_>>) -> Result<Started, LaunchError> {
    // The guard blocks all signals: what was blocked before is known from now on.
    inherited_mask();
    let (ours, theirs) = Channel::pair()?;
    let guard = guard::fork(spec, theirs, arm_program)?;
    match held(spec, &ours) {
        Ok((pid, command)) => Ok(Started { channel: ours, guard, pid, command, finished: false }),
        Err(error) => {
            // Without its channel it ends, and the command with it.
            drop(ours);
            wait_for(guard);
            Err(error)
        }
    }
}

/// The command that a guard has made, once it is ready.
fn held(spec: &LaunchSpec, guard: &Channel) -> Result<(Pid, OwnedFd), LaunchError> {
    let command = match guard.report()? {
        Some(Report::Ready { pid }) => pid,
        Some(Report::NotStarted { stage, errno }) => return Err(not_started(spec, stage, errno)),
        Some(Report::Killed { signal }) => return Err(killed(spec, signal)),
        Some(Report::Ended(_)) | None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    };
    let pid = Pid::from_raw(command).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok((pid, rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from)?))
}

/// Runs a command that is not measured.
///
/// # Errors
/// It cannot be started, or its guard is gone.
pub fn run_to_end(spec: &LaunchSpec) -> Result<Ended, LaunchError> {
    let started = start(spec, None)?;
    started.release()?;
    let ended = started.ended(spec)?;
    started.finish(Leftovers::Leave)?;
    Ok(ended)
}

/// Waits for the guard's end, which comes by itself; its status says nothing. The only error is that somebody else has waited
/// for it.
fn wait_for(guard: Pid) {
    let _ = rustix::process::waitpid(Some(guard), rustix::process::WaitOptions::empty());
}

fn killed(spec: &LaunchSpec, signal: i32) -> LaunchError {
    let command = spec.argv.first().cloned().unwrap_or_default();
    LaunchError::Killed { command: command.to_string_lossy().into_owned(), signal }
}

fn not_started(spec: &LaunchSpec, stage: Stage, errno: i32) -> LaunchError {
    let culprit = match stage {
        Stage::Directory => spec.directory.clone().unwrap_or_default().into_os_string(),
        _ => spec.argv.first().cloned().unwrap_or_default(),
    };
    LaunchError::NotStarted { command: culprit.to_string_lossy().into_owned(), stage, errno }
}

impl Started {
    /// Lets the command go. If it was killed meanwhile, and its guard has ended with it, [`Started::ended`] says so.
    ///
    /// # Errors
    /// The order cannot be sent.
    pub fn release(&self) -> Result<(), LaunchError> {
        match self.channel.order(Order::Release) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => Ok(sent?),
        }
    }

    /// Waits for the command's end.
    ///
    /// # Errors
    /// The `execve` failed after all, or the guard is gone.
    pub fn ended(&self, spec: &LaunchSpec) -> Result<Ended, LaunchError> {
        match self.channel.report()? {
            Some(Report::Ended(ended)) => Ok(ended),
            Some(Report::NotStarted { stage, errno }) => Err(not_started(spec, stage, errno)),
            Some(Report::Killed { signal }) => Err(killed(spec, signal)),
            Some(Report::Ready { .. }) | None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    /// The command's process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends the command a signal. It is not an error if the command has ended.
    pub fn signal(&self, signal: Signal) {
        if let Some(signal) = rustix::process::Signal::from_named_raw(signal as i32) {
            // ESRCH: it has ended.
            let _ = rustix::process::pidfd_send_signal(&self.command, signal);
        }
    }

    /// Sends the command's children a signal: those of its first thread, as proc(5) lists them. It is not an error if one has ended.
    pub fn signal_children(&self, signal: Signal) {
        let pid = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            // ESRCH: it has ended.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), signal);
        }
    }

    /// Whether the command, or anything that it left, is still running: whether its guard has children, as proc(5) lists them. True where
    /// a kernel without that list (CONFIG_PROC_CHILDREN) does not say.
    pub fn has_children(&self) -> bool {
        let guard = self.guard.as_raw_nonzero();
        std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children"))
            .map_or(true, |all| !all.trim().is_empty())
    }

    /// Ends the guard, and with it, or without it, what the command left running.
    ///
    /// # Errors
    /// The guard is gone.
    pub fn finish(mut self, leftovers: Leftovers) -> Result<(), LaunchError> {
        self.finished = true;
        self.channel.order(match leftovers {
            Leftovers::Leave => Order::Leave,
            Leftovers::Kill => Order::Kill,
        })?;
        wait_for(self.guard);
        Ok(())
    }
}

/// Readable once [`Started::ended`] would not block.
impl AsFd for Started {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.finished {
            // A guard that is gone has killed everything already, or was killed and took the command with it.
            let _ = self.channel.order(Order::Kill);
            wait_for(self.guard);
        }
    }
}
