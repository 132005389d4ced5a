//! Whether the contents of a FUSE server's file stay in the page cache when it is opened again.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "kernel_cache",
    what: "whether an open forgets what is cached of a FUSE server's file",
    matters: "the same files read again and again; contents that are changed behind the server may never be seen",
    kinds: &[Kind::Fuse],
    means: Means::MountWord,
    values: &[Value::risky("kernel_cache", Risk::Safety)],
};
