//! Everything that can go wrong, in one line each.

use std::{fmt, io, path::PathBuf};

use crate::Address;

/// Why a share is not served, mounted or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// The directory cannot be shared or mounted on.
    #[error("cannot {what} {}: {source}", path.display())]
    Directory {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// Nobody can listen there, or nobody does.
    #[error("cannot {what} {address}: {source}")]
    Address {
        /// What was attempted.
        what: &'static str,
        /// Where.
        address: Address,
        /// What the kernel says.
        source: io::Error,
    },
    /// The other side said no.
    #[error("the host of the share refuses: {0}")]
    Refused(String),
    /// The other side does not speak this protocol.
    #[error("who answers there is no host of a share")]
    NotAShare,
    /// The connection was lost, or the host did not answer in time.
    #[error("the host of the share is gone: {0}")]
    Gone(&'static str),
    /// This machine lacks something.
    #[error("{0}")]
    Lacking(String),
    /// Whatever else the kernel refuses.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

impl ShareError {
    pub(crate) fn directory(what: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Directory { what, path: path.into(), source: source.into() }
    }

    pub(crate) fn address(what: &'static str, address: &Address, source: impl Into<io::Error>) -> Self {
        Self::Address { what, address: address.clone(), source: source.into() }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    pub(crate) fn lacking(what: impl fmt::Display) -> Self {
        Self::Lacking(what.to_string())
    }

    /// Whether the user wrote something wrong, and not the machine lacks something.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }
}
