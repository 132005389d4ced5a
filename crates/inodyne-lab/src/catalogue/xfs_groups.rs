//! Allocation groups of XFS: 4 by default on one disk. Each has its own locks and free space.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "agcount",
    what: "into how many allocation groups XFS is divided",
    matters: "many processes that create and delete side by side; few groups keep files closer together",
    kinds: &[Kind::Xfs],
    means: Means::Mkfs { option: "-d", parameter: "agcount" },
    // Newer versions of mkfs.xfs refuse to make a single one, in which the superblock has no copy, and logs of less than 64 MiB, which lie
    // in one of them.
    values: &[Value::safe("2"), Value::safe("16").needing(1280)],
};
