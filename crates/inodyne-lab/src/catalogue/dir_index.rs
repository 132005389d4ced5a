//! Directories of ext3 and ext4 as hash trees. Reading one gives the names in the order of their hashes, which is not that of the
//! inodes.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "dir-index",
    what: "whether directories are trees of hashes",
    matters: "large directories: look-ups need the index; whoever reads small files in the order of a directory does better without",
    kinds: &[Kind::Ext3, Kind::Ext4],
    means: Means::MkfsFeature,
    values: &[Value::safe("dir_index"), Value::safe("^dir_index")],
};
