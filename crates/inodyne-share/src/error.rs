//! Everything that can go wrong, in one line each.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

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
    /// An address that needs keys, without them.
    #[error("{0} belong together, and tcp: needs both: whose key to trust, and one's own (`share key` makes keys)")]
    Keys(&'static str),
    /// Machines are named where none is known.
    #[error("--allow cid:N names a virtual machine that needs no key: over vsock: only, and not beside --key")]
    NoMachines,
    /// Nobody could connect.
    #[error(
        "vsock: needs --allow cid:N, the virtual machine whose root may mount it, or --key and --allow with its key"
    )]
    Nobody,
    /// Keys where there is nobody to show them to.
    #[error("keys are for tcp: and vsock: only; a Unix socket's permissions say who may use it")]
    NoKeys,
    /// An address to which no program of ours connects.
    #[error(
        "vhost-user: is for virtual machine monitors; in the guest it is mounted by `mount -t virtiofs TAG DIRECTORY`, and status answers at another --listen"
    )]
    Virtiofs,
    /// An option about guests of virtiofs, where nobody could use it.
    #[error("--owner is for vhost-user:, and not with --owners keep: other guests say it as they mount the share")]
    NoOwner,
    /// A key file that cannot be used.
    #[error("key file {}: {problem}", path.display())]
    KeyFile {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// One of the two sides does not know the other's key.
    #[error(
        "host and guest do not know each other: --host is the host's public key, and the host's --allow has the guest's"
    )]
    Strangers,
    /// The other side does not speak this protocol.
    #[error("what answers there is not the host of a share")]
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

    pub(crate) fn key_file(path: &Path, problem: impl fmt::Display) -> Self {
        Self::KeyFile { path: path.into(), problem: problem.to_string() }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    pub(crate) fn lacking(what: impl fmt::Display) -> Self {
        Self::Lacking(what.to_string())
    }

    /// Whether the user wrote something wrong, rather than the machine lacking something.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Directory { .. }
                | Self::Keys(_)
                | Self::NoKeys
                | Self::NoMachines
                | Self::Nobody
                | Self::Virtiofs
                | Self::NoOwner
                | Self::KeyFile { .. }
        )
    }
}
