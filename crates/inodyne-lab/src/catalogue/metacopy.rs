//! What an overlay copies up where only the owner or the mode of a file changes: all of it, or its attributes alone.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "metacopy",
    what: "whether an overlay copies attributes alone where contents stay the same",
    matters: "chown and chmod over files of a lower layer; never with layers from people who are not trusted",
    kinds: &[Kind::Overlay],
    means: Means::Mount("metacopy"),
    values: &[Value::risky("on", Risk::Security)],
};
