//! How long an ext4 commit may wait for others that want one as well: at most 15 ms by default, less where commits are quick (ext4(5)).

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "max_batch_time",
    what: "microseconds that a synchronous write may wait for others to join its commit",
    matters: "several processes that sync at once; nothing to wait for (0) helps where they never come together",
    kinds: &[Kind::Ext4],
    means: Means::Mount("max_batch_time"),
    values: &[Value::safe("0")],
};
