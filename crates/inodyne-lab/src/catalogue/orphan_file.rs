//! Where ext4 notes files that are deleted but still open, or just being truncated: in a file for all CPUs, or in one list with a lock.

use super::{Means, Tunable, Value};
use crate::Kind;

pub(super) const TUNABLE: Tunable = Tunable {
    name: "orphan-file",
    what: "whether deleted files that are still in use are noted in a file of their own",
    matters: "many processes that delete or truncate side by side",
    kinds: &[Kind::Ext4],
    // Where it is not left out it need not be there: distributions differ in what mke2fs does by default (/etc/mke2fs.conf).
    means: Means::MkfsValue("-O"),
    values: &[Value::safe("orphan_file"), Value::safe("^orphan_file")],
};
