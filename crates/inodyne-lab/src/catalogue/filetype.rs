//! Whether names in directories of ext2, ext3 and ext4 come with the types of their files: they do by default, but not in file systems that
//! were made long ago.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "filetype",
    what: "whether names in directories come with types",
    matters: "walks of trees: without types every file is looked at; tune2fs -O filetype and e2fsck add them to what is there",
    kinds: &[Kind::Ext2, Kind::Ext3, Kind::Ext4],
    means: Means::MkfsFeature,
    values: &[Value::safe("filetype")],
};
