//! How long reads may take before background writes are held back: 2 ms for non-rotational devices, 75 ms for others; 0 holds
//! nothing back (Documentation/ABI/stable/sysfs-block). Once it is written, the kernel no longer turns this off and on by itself.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "wbt_lat_usec",
    what: "the time in microseconds that reads may take before writeback is held back",
    matters: "much writing in the background: not held back (0) it ends sooner, and others wait longer for what they read",
    kinds: &[Kind::Ext2, Kind::Ext3, Kind::Ext4, Kind::Xfs, Kind::Btrfs],
    means: Means::Queue("wbt_lat_usec"),
    values: &[Value::safe("0")],
};
