//! The size of the log of XFS: mkfs.xfs chooses it by the size of the file system, at least 64 MiB.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "log-size",
    what: "the log of XFS",
    matters: "many changes of names and attributes: a full log makes everybody wait until older ones are written back",
    kinds: &[Kind::Xfs],
    means: Means::Mkfs { option: "-l", parameter: "size" },
    // It lies in one allocation group, of which there are four.
    values: &[Value::safe("128m").needing(640), Value::safe("512m").needing(2560)],
};
