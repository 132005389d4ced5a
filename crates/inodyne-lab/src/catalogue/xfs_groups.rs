//! Allocation groups of XFS: 4 by default on one disk. Each has its own locks and free space.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "agcount",
    what: "into how many allocation groups XFS is divided",
    matters: "many processes that create and delete side by side; few groups keep files closer together",
    kinds: &[Kind::Xfs],
    means: Means::Mkfs { option: "-d", parameter: "agcount" },
    values: &[Value::safe("1"), Value::safe("16").needing(1024)],
};
