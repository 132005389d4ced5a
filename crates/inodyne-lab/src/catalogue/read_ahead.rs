//! How far the kernel reads ahead of somebody who reads a file from its beginning to its end: 128 KiB by default.
//!
//! btrfs heeds only a value of its own and not that of its device's queue (`open_ctree` in fs/btrfs/disk-io.c).

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "read_ahead_kb",
    what: "how far files are read ahead, in KiB",
    matters: "reading large files from a device that is slow to answer; nothing ahead (0) helps where small pieces of large files are read",
    kinds: &[Kind::Ext2, Kind::Ext3, Kind::Ext4, Kind::Xfs],
    means: Means::Queue("read_ahead_kb"),
    values: &[Value::safe("0"), Value::safe("1024"), Value::safe("8192")],
};
