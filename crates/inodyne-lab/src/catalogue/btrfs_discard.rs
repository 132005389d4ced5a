//! Whether btrfs tells its device what is free: in the background since Linux 6.2, where the device can be told (btrfs(5)).

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "discard",
    what: "whether btrfs tells the device what was freed",
    matters: "deleting much beside other work; fstrim, once a week, tells it as well",
    kinds: &[Kind::Btrfs],
    means: Means::MountWord,
    values: &[Value::safe("nodiscard")],
};
