//! What a command brought into the page cache.

use crate::ledger::PAGE_FAULT;
use crate::page_cache::{Asked, Brought, Contents, FilePages, PageCache, Used};
use crate::trace::Trace;

const MIB: u64 = 1 << 20;

/// Adds it to a trace: most of a mapped file was read ahead in vain.
pub fn add_page_cache(trace: &mut Trace) {
    let row = |comm: &str, syscall: &str, contents, bytes, again_bytes| Brought {
        device: "7:0".to_owned(),
        name: "loop0".to_owned(),
        comm: comm.to_owned(),
        syscall: syscall.to_owned(),
        contents,
        bytes,
        again_bytes,
    };
    let used = |distinct, used_bytes, beside_bytes| Used { distinct_bytes: distinct, used_bytes, beside_bytes };
    let file = |inode, name: &str, used| FilePages { device: "7:0".to_owned(), inode, name: name.to_owned(), used };
    trace.page_cache = Some(PageCache {
        brought: vec![
            row("look", PAGE_FAULT, Contents::Files, 32 * MIB, 0),
            row("look", "read", Contents::Files, 9 * MIB, MIB),
            row("", "execve", Contents::Metadata, MIB / 4, 0),
        ],
        asked: Some(Asked {
            read_bytes: 16 * MIB,
            faults: 250,
            mapped: 6,
            of_brought: used(40 * MIB, 9 * MIB, 2 * MIB),
            files: vec![file(12, "data.mdb", used(32 * MIB, MIB, 2 * MIB)), file(13, "log", used(8 * MIB, 8 * MIB, 0))],
        }),
        evicted_bytes: 3 * MIB,
        evicted_own_bytes: MIB,
        not_followed_bytes: 0,
        unseen: 0,
    });
}
