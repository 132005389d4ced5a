//! By which path through the kernel block I/O was requested: journal commit, writeback, a read of metadata …
//!
//! What a request is decides first (a flush, a discard), then the kernel stack in which it was requested. The first group of functions
//! with one in the stack decides, wherever in the stack it is: a journal's commit writes through the same functions as everybody else,
//! and what a loop device asks of the disk below goes through that disk's file system. Seen with Linux 6.18; where a function has had
//! another name since 5.15, both are in the table.

use std::collections::{BTreeMap, HashMap, HashSet};

use inodyne_model::block::{Amount, Asker, BlockIo, Flag, IoPath, Operation, PathRequests, Requests};
use inodyne_model::observed::Observed;
use inodyne_model::stack::{Stack, StackId, function_name};

/// Functions that decide for both reads and writes, in this order.
const WHATEVER: &[(IoPath, &[&str])] = &[
    // drivers/block/loop.c
    (IoPath::Loop, &["loop_process_work", "lo_rw_aio", "loop_handle_cmd", "loop_queue_work"]),
    // fs/jbd2
    (IoPath::JournalCommit, &["jbd2_journal_commit_transaction"]),
    (IoPath::Checkpoint, &["jbd2_log_do_checkpoint", "jbd2_journal_flush", "jbd2_journal_destroy"]),
    // fs/xfs/xfs_log.c, xfs_log_cil.c; fs/btrfs/transaction.c, tree-log.c, disk-io.c
    (IoPath::Log, &["xlog_write_iclog", "xlog_sync", "xlog_ioend_work", "xlog_cil_push_work"]),
    (IoPath::Log, &["btrfs_commit_transaction", "btrfs_sync_log", "write_all_supers"]),
    // fs/xfs/xfs_trans_ail.c
    (IoPath::Checkpoint, &["xfsaild", "xfsaild_push"]),
    // fs/iomap/direct-io.c, block/fops.c, fs/direct-io.c
    (
        IoPath::Direct,
        &["__iomap_dio_rw", "__blkdev_direct_IO", "__blkdev_direct_IO_simple", "__blkdev_direct_IO_async"],
    ),
    (IoPath::Direct, &["blkdev_direct_IO", "__blockdev_direct_IO", "btrfs_direct_read", "btrfs_direct_write"]),
];

/// Functions that decide for reads.
const READS: &[(IoPath, &[&str])] = &[
    (IoPath::MetadataRead, &["__ext4_get_inode_loc", "ext4_sb_breadahead_unmovable", "ext4_read_bh", "ext4_bread"]),
    (IoPath::MetadataRead, &["ext4_read_bh_lock", "__bread_gfp", "__bh_read", "__bh_read_batch", "ext2_get_folio"]),
    (
        IoPath::MetadataRead,
        &["ext2_get_page", "xfs_buf_submit", "xfs_buf_read_map", "_xfs_buf_read", "__xfs_buf_submit"],
    ),
    (
        IoPath::MetadataRead,
        &["read_extent_buffer_pages", "read_extent_buffer_pages_nowait", "btrfs_read_extent_buffer"],
    ),
    (IoPath::MetadataRead, &["squashfs_read_metadata", "squashfs_cache_get", "erofs_bread", "erofs_read_metabuf"]),
    // mm/filemap.c, mm/readahead.c, mm/fadvise.c
    (
        IoPath::ReadAhead,
        &["filemap_readahead", "page_cache_async_ra", "force_page_cache_ra", "do_async_mmap_readahead"],
    ),
    (IoPath::ReadAhead, &["ksys_readahead", "madvise_willneed", "generic_fadvise"]),
];

/// Functions that decide for writes.
const WRITES: &[(IoPath, &[&str])] = &[
    // fs/fs-writeback.c
    (IoPath::Writeback, &["wb_workfn", "shrink_folio_list", "pageout"]),
    // fs/sync.c and what file systems call for it
    (IoPath::SyncWrite, &["do_fsync", "vfs_fsync_range", "ksys_sync", "__do_sys_syncfs", "__x64_sys_syncfs"]),
    (IoPath::SyncWrite, &["file_write_and_wait_range", "sync_filesystem", "generic_write_sync", "sync_file_range"]),
];

/// Writes by these belong to the metadata of a file system, whoever asks for them: a block device's own pages, the trees of btrfs, the
/// super block.
const METADATA_WRITERS: &[&str] =
    &["blkdev_writepages", "btree_writepages", "__sync_dirty_buffer", "ext4_commit_super"];

/// The rows of `paths`.
pub(crate) fn of(block: &BlockIo, observed: &Observed) -> Vec<PathRequests> {
    let stacks: HashMap<StackId, &Stack> = observed.stacks.iter().map(|stack| (stack.id, stack)).collect();
    let mut rows: BTreeMap<_, Amount> = BTreeMap::new();
    for requests in &block.requests {
        let path = path(requests, stacks.get(&requests.stack).copied());
        let key = (&requests.disk, requests.after, path, comm(&requests.comm), &requests.cgroup, requests.asker);
        rows.entry(key).or_default().add(&requests.amount);
    }
    type Key<'a> = (&'a String, bool, IoPath, &'a str, &'a Option<String>, Asker);
    let row = |((disk, after, path, comm, cgroup, asker), amount): (Key<'_>, Amount)| PathRequests {
        disk: disk.clone(),
        path,
        comm: comm.to_owned(),
        cgroup: cgroup.clone(),
        asker,
        after,
        amount,
    };
    let mut rows: Vec<PathRequests> = rows.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.amount.bytes, row.amount.requests)));
    rows
}

/// The command name without what tells kernel threads apart: `jbd2/loop0-8`, `xfsaild/loop1`.
fn comm(comm: &str) -> &str {
    let threads_of_the_kernel = ["jbd2/", "xfsaild/", "kworker/", "ksoftirqd/"];
    match threads_of_the_kernel.iter().find(|name| comm.starts_with(**name)) {
        Some(name) => name.trim_end_matches('/'),
        None => comm,
    }
}

fn path(requests: &Requests, stack: Option<&Stack>) -> IoPath {
    let functions: HashSet<&str> = stack.into_iter().flat_map(Stack::symbols).map(function_name).collect();
    let decided = |groups: &[(IoPath, &[&str])]| {
        groups.iter().find(|(_, names)| names.iter().any(|name| functions.contains(name))).map(|(path, _)| *path)
    };
    let has = |flag| requests.flags.contains(&flag);
    match requests.operation {
        Operation::Flush => return IoPath::Flush,
        Operation::Discard => return IoPath::Discard,
        _ if has(Flag::Swap) => return IoPath::Swap,
        // No data: what is written is what the device's cache holds.
        Operation::Write if requests.amount.bytes == 0 => return IoPath::FlushAsked,
        _ => {}
    }
    if let Some(path) = decided(WHATEVER) {
        return path;
    }
    let knows_nothing = functions.is_empty();
    match requests.operation {
        Operation::Read => match decided(READS) {
            _ if has(Flag::Meta) => IoPath::MetadataRead,
            Some(path) => path,
            None if knows_nothing => IoPath::Other,
            None => IoPath::DataRead,
        },
        Operation::Write if METADATA_WRITERS.iter().any(|name| functions.contains(name)) => IoPath::MetadataWrite,
        Operation::Write => match decided(WRITES) {
            _ if has(Flag::Meta) => IoPath::MetadataWrite,
            Some(path) => path,
            None if knows_nothing => IoPath::Other,
            // Workers of a file system that write for others (btrfs, XFS): whether somebody waits is in the flags.
            None if has(Flag::Sync) => IoPath::SyncWrite,
            None => IoPath::Writeback,
        },
        _ => IoPath::Other,
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::stack::Frame;

    use super::*;

    fn asked(operation: Operation, flags: &[Flag], bytes: u64, functions: &[&str]) -> IoPath {
        let amount = Amount { requests: 1, bytes, ..Amount::default() };
        let requests = Requests { operation, flags: flags.to_vec(), amount, ..Requests::default() };
        let frames = functions.iter().map(|name| Frame::Symbol((*name).to_owned())).collect();
        path(&requests, Some(&Stack { id: StackId(1), frames, truncated: false }))
    }

    /// A path, and the operation, flags, bytes and functions that have it.
    type Case = (IoPath, Operation, &'static [Flag], u64, Vec<&'static str>);

    /// Stacks as Linux 6.18 gave them, shortened.
    #[test]
    fn real_stacks_have_their_paths() {
        use Operation::{Discard, Flush, Read, Write};
        let kworker = ["process_one_work", "worker_thread", "kthread"];
        let with = |functions: &[&'static str]| functions.iter().copied().chain(kworker).collect::<Vec<_>>();
        let cases: [Case; 16] = [
            (
                IoPath::JournalCommit,
                Write,
                &[Flag::Sync, Flag::Meta],
                4096,
                vec![
                    "submit_bio_noacct_nocheck",
                    "journal_submit_commit_record",
                    "jbd2_journal_commit_transaction",
                    "kjournald2",
                ],
            ),
            (
                IoPath::Checkpoint,
                Write,
                &[Flag::Sync, Flag::Meta],
                1024,
                vec!["__flush_batch", "jbd2_log_do_checkpoint", "__jbd2_log_wait_for_space", "add_transaction_credits"],
            ),
            (
                IoPath::Loop,
                Write,
                &[Flag::Sync],
                4096,
                with(&["__iomap_dio_rw", "ext4_file_write_iter", "lo_rw_aio.isra.0", "loop_process_work"]),
            ),
            (
                IoPath::Writeback,
                Write,
                &[Flag::Sync],
                4096,
                with(&["ext4_io_submit", "ext4_do_writepages", "wb_writeback", "wb_workfn"]),
            ),
            (
                IoPath::MetadataWrite,
                Write,
                &[Flag::Meta],
                4096,
                with(&["__block_write_full_folio", "blkdev_writepages", "wb_workfn"]),
            ),
            (
                IoPath::SyncWrite,
                Write,
                &[Flag::Sync],
                4096,
                vec!["ext4_io_submit", "file_write_and_wait_range", "ext4_sync_file", "do_fsync"],
            ),
            (IoPath::FlushAsked, Write, &[Flag::Sync], 0, vec!["blkdev_issue_flush", "ext4_sync_file", "do_fsync"]),
            (IoPath::Flush, Flush, &[Flag::Preflush], 0, vec![]),
            (IoPath::Discard, Discard, &[Flag::Sync], 4096, vec!["blkdev_issue_discard", "ext4_free_blocks"]),
            (
                IoPath::MetadataRead,
                Read,
                &[Flag::Meta],
                4096,
                vec!["__ext4_get_inode_loc", "__ext4_iget", "ext4_lookup"],
            ),
            (
                IoPath::MetadataRead,
                Read,
                &[Flag::ReadAhead],
                4096,
                vec!["ext4_sb_breadahead_unmovable", "__ext4_get_inode_loc", "ext4_lookup"],
            ),
            // Everything that goes through the readahead functions has the flag, even what is waited for.
            (
                IoPath::DataRead,
                Read,
                &[Flag::ReadAhead],
                4096,
                vec!["ext4_mpage_readpages", "read_pages", "page_cache_ra_order", "filemap_get_pages"],
            ),
            (
                IoPath::ReadAhead,
                Read,
                &[Flag::ReadAhead],
                4096,
                vec!["read_pages", "page_cache_ra_order", "filemap_readahead.isra.0", "filemap_get_pages"],
            ),
            (
                IoPath::Direct,
                Read,
                &[Flag::Sync],
                4096,
                vec!["iomap_dio_bio_iter", "__iomap_dio_rw", "ext4_file_read_iter"],
            ),
            (IoPath::Log, Write, &[Flag::Sync, Flag::Meta], 4096, with(&["xlog_write_iclog", "xlog_cil_push_work"])),
            (IoPath::Other, Read, &[], 4096, vec![]),
        ];
        for (path, operation, flags, bytes, functions) in cases {
            assert_eq!(asked(operation, flags, bytes, &functions), path, "{functions:?}");
        }
    }

    #[test]
    fn threads_of_the_kernel_lose_their_numbers_and_programs_keep_their_names() {
        assert_eq!([comm("jbd2/loop0-8"), comm("xfsaild/loop1"), comm("a/b")], ["jbd2", "xfsaild", "a/b"]);
    }
}
