//! How long the kernel itself answers that a FUSE server has no file of a given name.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "negative_timeout",
    what: "how long the kernel believes a FUSE server that a name is not there, in seconds",
    matters: "compilers and interpreters that look for files along search paths; what is made behind the server is seen that much later",
    kinds: &[Kind::Fuse],
    means: Means::Mount("negative_timeout"),
    values: &[Value::risky("60", Risk::Safety)],
};
