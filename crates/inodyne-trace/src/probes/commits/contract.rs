//! What both sides share about journals; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// Which journal.
    Key = journal_key;
    /// What it did.
    Row = journal_row;
    /// Which commit of it.
    CommitKey = commit_key;
    /// When that was, and how much.
    Span = commit_span;
}

constants! {
    journal_kind { JOURNAL_JBD2: u32, JOURNAL_XFS: u32, JOURNAL_BTRFS: u32 }
}
