//! How long the kernel itself answers with what a FUSE server has said of names and attributes. Either one alone saves nothing: whoever
//! asks for a path asks for both.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "fuse-timeouts",
    what: "how long the kernel believes a FUSE server's names and attributes, in seconds",
    matters: "the same paths looked at again and again; what is changed behind the server is seen that much later",
    kinds: &[Kind::Fuse],
    means: Means::MountWord,
    values: &[Value::risky("entry_timeout=60,attr_timeout=60", Risk::Safety)],
};
