//! How many requests may wait for a device: 128 by default, which loop devices cannot exceed.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "nr_requests",
    what: "how many requests may wait in the queue of the device",
    matters: "many writes at once: whoever finds the queue full waits",
    kinds: &[Kind::Ext2, Kind::Ext3, Kind::Ext4, Kind::Xfs, Kind::Btrfs],
    means: Means::Queue("nr_requests"),
    values: &[Value::safe("32")],
};
