//! How many blocks of the inode table ext4 reads together: 32 by default.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "inode_readahead_blks",
    what: "blocks of the inode table that are read together; a power of two",
    matters: "a cold walk of a tree on a device that is slow to answer: fewer and larger reads",
    kinds: &[Kind::Ext4],
    means: Means::Mount("inode_readahead_blks"),
    values: &[Value::safe("256"), Value::safe("4096")],
};
