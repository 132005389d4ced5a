//! What ext3 and ext4 do with the contents of files when they commit: by default they are written before the journal says that
//! they are there.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "data",
    what: "how contents and journal of ext3 and ext4 are ordered",
    matters: "writing and syncing at once: journal makes small synced writes sequential, writeback lets commits not wait for contents",
    kinds: &[Kind::Ext3, Kind::Ext4],
    means: Means::Mount("data"),
    values: &[Value::safe("journal"), Value::risky("writeback", Risk::Durability)],
};
