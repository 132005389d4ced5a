//! What an overlay does where a directory of a lower layer is renamed: it refuses, so that mv copies all of it, or notes where it was.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "redirect_dir",
    what: "whether an overlay can rename directories of a lower layer",
    matters: "mv of directories of a lower layer; never with layers from people who are not trusted",
    kinds: &[Kind::Overlay],
    means: Means::Mount("redirect_dir"),
    values: &[Value::risky("on", Risk::Security)],
};
