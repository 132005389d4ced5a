//! How a share is doing, as the host reports it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A share that is served.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The directory.
    pub directory: String,
    /// Nothing is changed on behalf of any guest.
    pub read_only: bool,
    /// Directories are read without types.
    pub withhold_types: bool,
    /// `strict` or `relaxed`.
    pub ordering: String,
    /// Whether guests are told of what programs on the host change.
    pub watched: bool,
    /// How long guests believe what they are told, in seconds.
    pub valid_seconds: u64,
    /// What confines the host's process to the directory: `capabilities`, `namespaces`, `landlock`, `seccomp`.
    #[serde(default)]
    pub sandbox: Vec<String>,
    /// How long it has been served, in seconds.
    pub served_seconds: u64,
    /// Nodes that any guest knows.
    pub nodes: u64,
    /// Open descriptors of such nodes.
    pub descriptors: u64,
    /// Files that guests have open.
    pub open_files: u64,
    /// Events of the host's file system that were looked at.
    pub host_events: u64,
    /// How often some of them were lost, so that guests were told to forget everything.
    pub host_events_lost: u64,
    /// Who has it mounted.
    pub guests: Vec<GuestStatus>,
}

/// One guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuestStatus {
    /// Its number.
    pub guest: u32,
    /// The public key by which it is known; none on a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// For how long, in seconds.
    pub connected_seconds: u64,
    /// Nodes that its kernel holds.
    pub nodes_held: u64,
    /// Requests that it waited for.
    pub round_trips: u64,
    /// Requests by kind.
    pub requests: BTreeMap<String, u64>,
    /// Whether it is told of changes. One that is not, a virtiofs client, asks again after a second.
    #[serde(default = "yes")]
    pub told_of_changes: bool,
    /// Messages about changes.
    pub invalidations_sent: u64,
    /// Those that it has acknowledged.
    pub invalidations_acknowledged: u64,
}

/// The value where nothing is said about it.
fn yes() -> bool {
    true
}
