//! The size of the buffers in which XFS collects its log: 32 KiB by default.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "logbsize",
    what: "the size of each buffer of the log of XFS",
    matters: "many changes of names and attributes",
    kinds: &[Kind::Xfs],
    means: Means::Mount("logbsize"),
    values: &[Value::safe("256k")],
};
