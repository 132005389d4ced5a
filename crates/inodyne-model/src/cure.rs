//! What a program can do about a finding: the part of a cure that is data.
//!
//! A diagnosis produces it together with the text of the report. `inodyne prove` applies it to what is in the recording and
//! measures what it gains; nothing here knows how places are made.

use serde::{Deserialize, Serialize};

/// The typed form of one line of [`Finding::cure`](crate::finding::Finding::cure).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cure {
    /// What a program has to change.
    pub change: Change,
    /// The evidence that it answers: an index into [`Finding::evidence`](crate::finding::Finding::evidence).
    pub answers: usize,
}

/// A change to how a command was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The place is made differently.
    Place(PlaceChange),
    /// A setting has another value for as long as the place exists.
    Setting {
        /// Its file under /sys or /proc/sys; `LOOP` stands for the name of the place's own device.
        file: String,
        /// The value.
        value: String,
    },
    /// The caches are in another state before each run.
    Cache(CacheChange),
    /// The command is run differently.
    Command(CommandChange),
    /// Something for people to do.
    Advice {
        /// Why no program can do it, where there is more to say than that none has been taught to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
}

/// A change to a place. The first three concern the file system that the place was made as, wherever it lies below others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceChange {
    /// A feature of ext2, ext3 or ext4 that it was made without (`-O ^filetype`) is no longer left out.
    Feature(String),
    /// Another value for a parameter of mkfs that it was made with, such as `size` of `-J size=4`.
    Mkfs {
        /// The option of mkfs: `-J`.
        option: String,
        /// The parameter in it: `size`.
        parameter: String,
        /// The value it is to have.
        value: String,
    },
    /// One more mount option, or another value for one.
    Mount(String),
    /// These settings are no longer changed but left as the machine has them. Named by the last part of their files.
    WithoutSettings(Vec<String>),
    /// An overlay lies over it, mounted with these options.
    Over(String),
    /// What the overlay lies over, without the overlay.
    Below,
}

/// Another state of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheChange {
    /// Warm, as [`CacheState::Warm`](crate::run::CacheState::Warm).
    Warm,
    /// Warm, and the contents of all files are in memory.
    Contents,
}

/// Another way to run the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandChange {
    /// Several processes side by side, each with its part of the files that the command names.
    SideBySide {
        /// How many, at least 2.
        processes: u32,
    },
    /// A script for `/bin/sh` instead of it.
    Instead(String),
}

impl Change {
    /// Something for people to do.
    pub fn advice() -> Change {
        Change::Advice { because: None }
    }
}
