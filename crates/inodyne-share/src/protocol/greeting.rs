//! The handshake: the first frame in each direction, as JSON, so that different versions can still tell each other that they differ.

use serde::{Deserialize, Serialize};

use super::status::Status;

/// The version of everything on the stream but the kernel's messages.
pub(crate) const VERSION: u32 = 3;

/// What tells a mount from every other one.
pub(crate) type Session = [u64; 2];

/// Who connects.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub version: u32,
    /// Structures of the kernel's protocol are laid out as 64-bit little-endian machines have them.
    pub little_endian_64: bool,
    pub purpose: Purpose,
}

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Purpose {
    /// To mount what is shared. Where owners are squashed, everything is shown as this user's and group's.
    Mount {
        uid: u32,
        gid: u32,
        /// What it is recognised by if it loses the connection: a number that nobody else can guess. Whoever had it before is gone.
        #[serde(default)]
        session: Option<Session>,
        /// Whether it wants to hear what programs on the host do.
        #[serde(default)]
        events: bool,
    },
    /// To ask for the share's status.
    Status,
}

impl Hello {
    pub fn new(purpose: Purpose) -> Self {
        let little_endian_64 = cfg!(all(target_endian = "little", target_pointer_width = "64"));
        Self { version: VERSION, little_endian_64, purpose }
    }

    /// Why whoever says this cannot be served, if so.
    pub fn refusal(&self) -> Option<String> {
        if self.version != VERSION {
            return Some(format!("this host speaks version {VERSION} of the protocol, and not {}", self.version));
        }
        (!self.little_endian_64).then(|| "only 64-bit little-endian machines are served".into())
    }
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Welcome {
    /// Go on.
    Mount {
        read_only: bool,
        /// Which directory it is.
        #[serde(default)]
        root: u64,
        /// Since when the host's machine has been running: what it wrote before may be lost.
        #[serde(default)]
        boot: String,
        /// Whether all files belong to whoever mounts them. If so, extended attributes that give them rights are not shown.
        #[serde(default)]
        squashed: bool,
        /// Whether programs on the host are watched.
        #[serde(default)]
        watched: bool,
    },
    /// The share's status.
    Status(Box<Status>),
    /// In one line.
    Refused(String),
}
