//! How much data that is not written back yet may be in memory before those who write have to wait: by default a fifth of the available
//! memory (`dirty_ratio`).

use super::{Means, Tunable, Value};

pub(super) const TUNABLE: Tunable = Tunable {
    name: "dirty_bytes",
    what: "how much written data may wait in memory, in bytes; takes the place of dirty_ratio",
    matters: "writing more than memory takes: little keeps others from long waits, much lets a burst end sooner",
    kinds: &[],
    means: Means::Vm("dirty_bytes"),
    values: &[Value::safe("67108864"), Value::safe("1073741824")],
};
