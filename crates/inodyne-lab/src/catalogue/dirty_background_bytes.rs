//! How much written data there must be before it is written back although nobody waits for that: by default a tenth of the available
//! memory (`dirty_background_ratio`).

use super::{Means, Tunable, Value};

pub(super) const TUNABLE: Tunable = Tunable {
    name: "dirty_background_bytes",
    what: "how much written data begins to be written back, in bytes; takes the place of dirty_background_ratio",
    matters: "writing that ends with a sync: what was begun early need not be waited for then",
    kinds: &[],
    means: Means::Vm("dirty_background_bytes"),
    values: &[Value::safe("4194304"), Value::safe("67108864")],
};
