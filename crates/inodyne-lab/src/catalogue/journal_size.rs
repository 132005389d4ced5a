//! The size of the journal of ext3 and ext4. mke2fs chooses it by the size of the file system, up to 1 GiB.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "journal-size",
    what: "the journal of ext3 and ext4, in MiB",
    matters: "many changes of names and attributes: a full journal makes everybody wait for a checkpoint",
    kinds: &[Kind::Ext3, Kind::Ext4],
    means: Means::Mkfs { option: "-J", parameter: "size" },
    values: &[Value::safe("64").needing(256), Value::safe("256").needing(1024), Value::safe("1024").needing(4096)],
};
