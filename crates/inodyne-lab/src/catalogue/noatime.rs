//! Access times. By default (relatime) the first read of a file after a change, or once a day, writes its inode.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "atime",
    what: "whether reading a file notes when it was read",
    matters: "reading many files for the first time in a day: every one of them is a write",
    kinds: &[Kind::Ext2, Kind::Ext3, Kind::Ext4, Kind::Xfs, Kind::Btrfs],
    means: Means::MountWord,
    values: &[Value::safe("noatime")],
};
