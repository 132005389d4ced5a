//! Every way in which inodyne itself can fail: one line that says what is wrong and what to do, and an exit code.

use std::fmt;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

use inodyne_disk::DiskError;
use inodyne_experiment::ExperimentError;
use inodyne_lab::LabError;
use inodyne_launch::{LaunchError, Stage};
use inodyne_model::recording::RecordingError;
use inodyne_model::run::Exit;
use inodyne_recording::FileError;
use inodyne_render::escaped;
use inodyne_trace::TraceError;
use inodyne_tree::TreeError;

/// What the process returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// 1: an expectation does not hold, runs failed, or something was found that should not be.
    Failed,
    /// 2: something the user wrote is wrong.
    Usage,
    /// 3: this machine lacks something.
    Lacking,
    /// 4: the measurement cannot be trusted.
    Untrusted,
    /// 130: ended by the user.
    Interrupted,
    /// `run`: as the command ended; 128 + signal if a signal killed it, 126 or 127 if it could not be executed or found.
    Command(u8),
}

impl ExitStatus {
    /// As the command ended, in the way shells report it.
    pub fn of(exit: Exit) -> ExitStatus {
        u8::try_from(exit.shell_code()).map_or(ExitStatus::Interrupted, ExitStatus::Command)
    }

    /// The number, as scripts see it. Zero is not a failure.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Failed => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Lacking => 3,
            ExitStatus::Untrusted => 4,
            ExitStatus::Interrupted => 130,
            ExitStatus::Command(code) => code,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status.code())
    }
}

/// One line and an exit code.
#[derive(Debug)]
pub struct Failure {
    status: ExitStatus,
    message: String,
}

impl Failure {
    /// A failure with its exit code.
    pub fn new(status: ExitStatus, message: impl fmt::Display) -> Failure {
        Failure { status, message: message.to_string() }
    }

    /// A file that cannot be read or written: what the user can fix by naming another file is a usage error, anything else is for the machine to fix.
    pub fn of_file(error: &io::Error, message: impl fmt::Display) -> Failure {
        let is_full = matches!(
            error.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge | ErrorKind::OutOfMemory
        );
        Failure::new(if is_full { ExitStatus::Lacking } else { ExitStatus::Usage }, message)
    }

    /// What the process returns.
    pub fn status(&self) -> ExitStatus {
        self.status
    }

    /// The same where the exit code is inodyne's own and not that of one command, as everywhere but in `run`: whoever names a command that
    /// is not there has made a mistake.
    pub fn of_inodyne(self) -> Failure {
        let status = match self.status {
            ExitStatus::Command(126 | 127) => ExitStatus::Usage,
            // A signal came while it was being started.
            ExitStatus::Command(_) => ExitStatus::Interrupted,
            other => other,
        };
        Failure { status, ..self }
    }
}

impl fmt::Display for Failure {
    /// Always one line: where a file name or a program's message breaks the line, it is joined. And nothing but text: a name in an
    /// archive must not move the cursor.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.message.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Failure {
        Failure::new(if error.is_usage() { ExitStatus::Usage } else { ExitStatus::Lacking }, error)
    }
}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Failure {
        Failure::new(if error.is_usage() { ExitStatus::Usage } else { ExitStatus::Lacking }, error)
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure::new(ExitStatus::Lacking, error)
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Failure {
        // The user has said which directory it is.
        let other = match error {
            LaunchError::NotStarted { stage: Stage::Directory, .. } => ExitStatus::Usage,
            _ => ExitStatus::Lacking,
        };
        Failure::new(error.shell_code().map_or(other, ExitStatus::Command), error)
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Failure {
        let status = match error {
            ExperimentError::Lab(error) => return error.into(),
            ExperimentError::Trace(error) => return error.into(),
            ExperimentError::Launch(error) => return error.into(),
            ExperimentError::NotBelow(_)
            | ExperimentError::NotMadeHere(_)
            | ExperimentError::OtherExperiment { .. } => ExitStatus::Usage,
            ExperimentError::DifferentData { .. } | ExperimentError::ChangedData { .. } => ExitStatus::Untrusted,
            ExperimentError::Script { .. }
            | ExperimentError::NoNumber { .. }
            | ExperimentError::UnexpectedExit { .. } => ExitStatus::Failed,
            ExperimentError::KilledEarly { signal } => ExitStatus::of(Exit::Signal(signal)),
            ExperimentError::InterruptedEarly | ExperimentError::Killed => ExitStatus::Interrupted,
            ExperimentError::System { .. } | ExperimentError::NothingFromStrace => ExitStatus::Lacking,
        };
        Failure::new(status, error)
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Failure {
        Failure::new(if error.is_usage() { ExitStatus::Usage } else { ExitStatus::Lacking }, error)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        match &error.source {
            RecordingError::Io(io) => Failure::of_file(io, &error),
            _ => Failure::new(ExitStatus::Usage, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_run_ends_as_a_command_would() {
        let not_started = |errno| LaunchError::NotStarted { command: "none".to_owned(), stage: Stage::Execute, errno };
        let codes = |error: ExperimentError| {
            let of_run = Failure::from(error);
            [of_run.status().code(), of_run.of_inodyne().status().code()]
        };
        assert_eq!(codes(not_started(libc::ENOENT).into()), [127, 2]);
        assert_eq!(codes(not_started(libc::EACCES).into()), [126, 2]);
        assert_eq!(codes(ExperimentError::KilledEarly { signal: libc::SIGTERM }), [143, 130]);
        assert_eq!(codes(ExperimentError::NothingFromStrace), [3, 3]);
    }

    #[test]
    fn a_failure_is_one_line_of_text() {
        let failure = Failure::new(ExitStatus::Usage, "the entry a\nb\x1b[2J\u{202e}c\u{9b}1m ä");
        assert_eq!(failure.to_string(), r"the entry a b\u{1b}[2J\u{202e}c\u{9b}1m ä");
    }
}
