//! What decides the order in which requests go to a device.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "scheduler",
    what: "what puts the requests to a device in order",
    matters: "reads and writes at once; a device that puts them in order itself does better with none",
    kinds: &[Kind::Ext2, Kind::Ext3, Kind::Ext4, Kind::Xfs, Kind::Btrfs],
    means: Means::Queue("scheduler"),
    values: &[Value::safe("none"), Value::safe("mq-deadline"), Value::safe("bfq")],
};
