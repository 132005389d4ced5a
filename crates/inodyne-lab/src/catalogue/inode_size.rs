//! The size of inodes of ext2, ext3 and ext4: 256 bytes by default. Smaller ones lie closer together, larger ones hold small files
//! and attributes.

use inodyne_model::tuning::Risk;

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "inode-size",
    what: "the size of an inode of ext2, ext3 and ext4, in bytes",
    matters: "cold walks of trees (128: fewer blocks to read; its times are whole seconds and end in 2038), files with attributes (512)",
    kinds: &[Kind::Ext2, Kind::Ext3, Kind::Ext4],
    means: Means::MkfsValue("-I"),
    values: &[Value::risky("128", Risk::Safety), Value::safe("512")],
};
