//! Compression of what btrfs writes.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "compress",
    what: "whether and how btrfs compresses what is written",
    matters: "writing much that can be compressed to a slow device; costs CPU time",
    kinds: &[Kind::Btrfs],
    means: Means::Mount("compress"),
    values: &[Value::safe("lzo"), Value::safe("zstd:1")],
};
