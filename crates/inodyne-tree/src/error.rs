//! What can go wrong with a whole operation: one error type, each message one line that says what to do.
//!
//! A failure on a single entry during a delete is not an error but data, because the rest is still removed.

use std::{io::ErrorKind, path::PathBuf};

use thiserror::Error;

/// Why a tree could not be made, checked or started on.
#[derive(Debug, Error)]
pub enum TreeError {
    /// A system call failed, and nothing sensible can be done without it.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb: "open", "create".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A tree specification that cannot be understood.
    #[error("tree specification: {0}")]
    Spec(String),
    /// A tree would be made over existing files.
    #[error("{} is not empty: a tree is only made in a new or an empty directory", .0.display())]
    NotEmpty(PathBuf),
    /// It was given up before it was whole, as [`crate::MakeOptions::is_unwanted`] wanted.
    #[error("given up before the tree was whole")]
    Unwanted,
    /// A check without a specification, of a directory that carries none.
    #[error("{} does not say which tree it holds: give the options it was made with", .0.display())]
    NoRecordedSpec(PathBuf),
}

impl TreeError {
    /// Whether what was asked for is wrong, rather than what the machine answered.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
            Self::Unwanted => false,
            Self::Spec(_) | Self::NotEmpty(_) | Self::NoRecordedSpec(_) => true,
        }
    }

    /// Wraps a kernel answer with what was tried, on what.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: impl Into<std::io::Error>) -> Self {
        Self::Io { action, path: path.into(), source: source.into() }
    }
}
