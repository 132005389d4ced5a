//! Times that are kept in memory until the inode is written for another reason, or for a day.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "lazytime",
    what: "whether a change of times alone is written at once",
    matters: "many small writes into existing files; a crash loses times of up to a day",
    kinds: &[Kind::Ext2, Kind::Ext3, Kind::Ext4, Kind::Xfs, Kind::Btrfs],
    means: Means::MountWord,
    values: &[Value::risky("lazytime", Risk::Durability)],
};
