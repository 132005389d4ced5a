//! Every way in which inodyne itself can fail: one line that says what is wrong and what to do, and an exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | the command's own | `run`, where the command ran; 128 + signal where a signal killed it |
//! | 1 | an expectation failed |
//! | 2 | usage: something the user wrote |
//! | 3 | this machine lacks something |
//! | 4 | the measurement is not to be trusted |
//! | 126, 127 | `run`: the command is not executable, or not found |
//! | 130 | interrupted |

use std::fmt;
use std::process::ExitCode;

use inodyne_lab::LabError;
use inodyne_model::recording::RecordingError;
use inodyne_render::escaped;
use inodyne_trace::TraceError;
use inodyne_trace::launch::{LaunchError, Stage};
use inodyne_tree::TreeError;

/// Something the user wrote is wrong.
pub const USAGE: u8 = 2;
/// The machine lacks something.
pub const LACKING: u8 = 3;
/// Events were lost.
pub const UNTRUSTED: u8 = 4;
/// Ended by the user.
pub const INTERRUPTED: u8 = 130;

/// One line and an exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// A failure with its exit code.
    pub fn new(code: u8, message: impl fmt::Display) -> Failure {
        Failure { code, message: message.to_string() }
    }

    /// What the process returns.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    /// Always one line: what a file name or a program's message breaks is joined. And nothing but text: a name in an archive
    /// must not move the cursor.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.message.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Failure {
        Failure::new(if error.is_usage() { USAGE } else { LACKING }, error)
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure::new(LACKING, error)
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Failure {
        // Which directory it is, the user has said.
        let other = match error {
            LaunchError::NotStarted { stage: Stage::Directory, .. } => USAGE,
            _ => LACKING,
        };
        Failure::new(error.shell_code().unwrap_or(other), error)
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Failure {
        Failure::new(if error.is_usage() { USAGE } else { LACKING }, error)
    }
}

impl From<RecordingError> for Failure {
    fn from(error: RecordingError) -> Failure {
        Failure::new(USAGE, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_of_text() {
        let failure = Failure::new(USAGE, "the entry a\nb\x1b[2J\u{202e}c\u{9b}1m ä");
        assert_eq!(failure.to_string(), r"the entry a b\u{1b}[2J\u{202e}c\u{9b}1m ä");
    }
}
