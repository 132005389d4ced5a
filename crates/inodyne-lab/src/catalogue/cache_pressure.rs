//! How readily the kernel gives up cached names and inodes rather than contents: 100 by default.

use super::{Means, Tunable, Value};

pub(super) const TUNABLE: Tunable = Tunable {
    name: "vfs_cache_pressure",
    what: "how readily cached names and inodes are given up",
    matters: "walking the same large tree again and again beside much reading",
    kinds: &[],
    means: Means::Vm("vfs_cache_pressure"),
    values: &[Value::safe("10"), Value::safe("50")],
};
