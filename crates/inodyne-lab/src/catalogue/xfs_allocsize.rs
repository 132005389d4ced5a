//! How far XFS allocates ahead of the end of a file that grows. By default it decides by the size of the file.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "allocsize",
    what: "how far XFS allocates ahead of the end of a file that grows",
    matters: "several files that grow at once, in small pieces",
    kinds: &[Kind::Xfs],
    means: Means::Mount("allocsize"),
    values: &[Value::safe("64k"), Value::safe("64m")],
};
