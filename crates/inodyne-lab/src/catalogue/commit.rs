//! How often a journal is committed where nobody asks for it: by default every 5 s, on btrfs every 30 s.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "commit",
    what: "seconds between two commits that nobody asks for",
    matters: "long writes of many files; a crash loses what was written since the last commit",
    kinds: &[Kind::Ext3, Kind::Ext4, Kind::Btrfs],
    means: Means::Mount("commit"),
    values: &[Value::risky("60", Risk::Durability), Value::risky("300", Risk::Durability)],
};
