//! The table of kernel functions and what a wait below them means. All rules of the project are here.
//!
//! `seen` says how a rule is known: a kernel version means that such a stack was observed on that version (the
//! fixtures in `tests.rs` are these stacks); a path means that it is known from that file of the kernel's source, as
//! of Linux 6.18 unless the line says otherwise. Names of older kernels stay in the table: a function that no longer
//! exists costs nothing.

use inodyne_model::cause::Cause;

/// How a thread waits, as far as that narrows down what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// For a sleeping lock.
    Lock,
    /// For a page or a buffer to be read or written.
    Device,
    /// For a direct read or write to complete.
    Direct,
    /// For some work to be completed by another thread.
    Completion,
}

impl Way {
    /// The cause where no further function says more.
    pub(super) fn otherwise(self) -> Cause {
        match self {
            Way::Lock => Cause::Lock,
            Way::Device | Way::Direct | Way::Completion => Cause::Other,
        }
    }
}

/// What a function in a stack says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// How the thread waits; a function farther out says for what.
    Waits(Way),
    /// The cause.
    Is(Cause),
    /// The cause, if the wait is of this way; otherwise it says nothing.
    When(Way, Cause),
}

/// One rule.
pub(super) struct Rule {
    /// The function, without compiler suffixes.
    pub(super) symbol: &'static str,
    /// What it says.
    pub(super) means: Means,
    /// How we know.
    #[cfg_attr(not(test), expect(dead_code, reason = "a note for readers, checked by a test"))]
    pub(super) seen: &'static str,
}

const fn waits(symbol: &'static str, way: Way, seen: &'static str) -> Rule {
    Rule { symbol, means: Means::Waits(way), seen }
}

const fn is(symbol: &'static str, cause: Cause, seen: &'static str) -> Rule {
    Rule { symbol, means: Means::Is(cause), seen }
}

const fn when(symbol: &'static str, way: Way, cause: Cause, seen: &'static str) -> Rule {
    Rule { symbol, means: Means::When(way, cause), seen }
}

/// Functions of a waker that completes I/O: the lock it releases was held by the I/O, not by another thread.
pub(super) const IO_COMPLETIONS: &[&str] = &[
    "xfs_buf_ioend_work",       // fs/xfs/xfs_buf.c
    "xfs_buf_ioend",            // fs/xfs/xfs_buf.c
    "xfs_buf_bio_end_io",       // fs/xfs/xfs_buf.c
    "bio_endio",                // block/bio.c
    "blk_mq_end_request",       // block/blk-mq.c
    "blk_mq_end_request_batch", // block/blk-mq.c
    "blk_complete_reqs",        // block/blk-mq.c
    "end_bio_bh_io_sync",       // fs/buffer.c
    "end_buffer_read_sync",     // fs/buffer.c
    "btrfs_bio_end_io",         // fs/btrfs/bio.c
];

/// Functions of a waker that brings a server's answer: the page that it unlocks came from the server, not from a local device.
pub(super) const ANSWERS: &[(&str, Cause)] = &[
    ("fuse_request_end", Cause::FuseServer),        // fs/fuse/dev.c; seen on 6.18
    ("netfs_read_collection", Cause::RemoteServer), // fs/netfs/read_collect.c
    ("netfs_read_collection_worker", Cause::RemoteServer), // fs/netfs/read_collect.c
    ("netfs_write_collection_worker", Cause::RemoteServer), // fs/netfs/write_collect.c
    ("netfs_rreq_unlock_folios", Cause::RemoteServer), // fs/netfs/buffered_read.c, to 6.11
    ("netfs_rreq_assess", Cause::RemoteServer),     // fs/netfs/io.c, to 6.11
    ("netfs_consume_read_data", Cause::RemoteServer), // fs/netfs/read_collect.c, 6.12
    ("netfs_read_subreq_terminated", Cause::RemoteServer), // fs/netfs/read_collect.c
    ("cifs_readv_complete", Cause::RemoteServer),   // fs/cifs/file.c, 6.1
    ("cifs_readahead_complete", Cause::RemoteServer), // fs/smb/client/file.c, to 6.9
    ("cifs_writev_complete", Cause::RemoteServer),  // fs/smb/client/file.c, to 6.9
    ("nfs_read_completion", Cause::RemoteServer),   // fs/nfs/read.c
    ("nfs_write_completion", Cause::RemoteServer),  // fs/nfs/write.c
];

/// What an interrupt ended, by functions of its stack; consulted only where the waiter's own stack says nothing.
pub(super) const INTERRUPTS: &[(&str, Ended)] = &[
    ("hrtimer_wakeup", Ended::Time),          // kernel/time/hrtimer.c
    ("process_timeout", Ended::Time),         // kernel/time/sleep_timeout.c
    ("it_real_fn", Ended::Time),              // kernel/time/itimer.c
    ("posix_timer_fn", Ended::Time),          // kernel/time/posix-timers.c
    ("bio_endio", Ended::Io),                 // block/bio.c
    ("blk_update_request", Ended::Io),        // block/blk-mq.c
    ("blk_mq_end_request", Ended::Io),        // block/blk-mq.c
    ("blk_mq_end_request_batch", Ended::Io),  // block/blk-mq.c: of NVMe
    ("blk_complete_reqs", Ended::Io),         // block/blk-mq.c
    ("sock_def_readable", Ended::Packet),     // net/core/sock.c
    ("sk_stream_write_space", Ended::Packet), // net/core/stream.c
    ("tcp_v4_rcv", Ended::Packet),            // net/ipv4/tcp_ipv4.c
    ("tcp_v6_rcv", Ended::Packet),            // net/ipv6/tcp_ipv6.c
    ("udp_rcv", Ended::Packet),               // net/ipv4/udp.c
];

/// Kernel functions that only ever wait for a device because it is writing.
pub(super) const WRITERS: &[&str] =
    &["vfs_write", "vfs_writev", "vfs_fsync_range", "do_fsync", "ksys_sync", "sync_filesystem", "ksys_sync_file_range"];

/// What an interrupt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// A timer that was set.
    Time,
    /// A request of a block device.
    Io,
    /// The transfer of a packet over the network.
    Packet,
}

/// A thread that switches away in this function itself is stopped, in a frozen cgroup for instance: compilers put `do_freezer_trap` there
/// (kernel/signal.c). A thread that a signal ends passes it as well, and waits farther in.
pub(super) const STOPS: &str = "get_signal";

/// Functions between one that waits and the switch to another thread (kernel/sched/core.c).
pub(super) const SWITCHES: &[&str] = &["__schedule", "schedule"];

/// The rules. The order has no meaning: the stack decides which comes first.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    // How the thread waits.
    waits("rwsem_down_read_slowpath", Way::Lock, "6.18"),
    waits("rwsem_down_write_slowpath", Way::Lock, "6.18"),
    waits("__mutex_lock", Way::Lock, "6.18"),
    waits("__mutex_lock_slowpath", Way::Lock, "kernel/locking/mutex.c"),
    waits("mutex_lock", Way::Lock, "kernel/locking/mutex.c"),
    waits("__down_common", Way::Lock, "6.18"),
    waits("__down_interruptible", Way::Lock, "kernel/locking/semaphore.c"),
    waits("__down", Way::Lock, "kernel/locking/semaphore.c"),
    waits("down", Way::Lock, "6.18"),
    waits("down_read", Way::Lock, "6.18"),
    waits("down_write", Way::Lock, "6.18"),
    waits("down_read_killable", Way::Lock, "kernel/locking/rwsem.c"),
    waits("down_write_killable", Way::Lock, "kernel/locking/rwsem.c"),
    waits("mutex_lock_io", Way::Lock, "kernel/locking/mutex.c"),
    waits("mutex_lock_killable", Way::Lock, "kernel/locking/mutex.c"),
    waits("__percpu_down_read", Way::Lock, "kernel/locking/percpu-rwsem.c"),
    waits("percpu_down_write", Way::Lock, "kernel/locking/percpu-rwsem.c"),
    waits("percpu_rwsem_wait", Way::Lock, "kernel/locking/percpu-rwsem.c"),
    // With PREEMPT_RT.
    waits("rt_mutex_slowlock", Way::Lock, "kernel/locking/rtmutex.c"),
    waits("__rt_mutex_slowlock_locked", Way::Lock, "6.12"),
    waits("rt_mutex_schedule", Way::Lock, "6.12"),
    waits("rwbase_write_lock", Way::Lock, "6.12"),
    waits("__rwbase_read_lock", Way::Lock, "kernel/locking/rwbase_rt.c"),
    waits("schedule_rtlock", Way::Lock, "6.12"),
    waits("rtlock_slowlock_locked", Way::Lock, "6.12"),
    waits("rt_spin_lock", Way::Lock, "6.12"),
    waits("rt_write_lock", Way::Lock, "6.12"),
    waits("rt_read_lock", Way::Lock, "kernel/locking/spinlock_rt.c"),
    waits("bit_wait_io", Way::Device, "6.18"),
    waits("bit_wait", Way::Device, "kernel/sched/wait_bit.c"),
    waits("folio_wait_bit_common", Way::Device, "6.18"),
    waits("folio_wait_bit", Way::Device, "6.18"),
    waits("__folio_lock", Way::Device, "6.18"),
    waits("__folio_lock_killable", Way::Device, "mm/filemap.c"),
    waits("folio_wait_bit_killable", Way::Device, "mm/filemap.c"),
    waits("folio_put_wait_locked", Way::Device, "mm/filemap.c"),
    waits("wait_on_page_bit_common", Way::Device, "mm/filemap.c, 4.11 to 5.15"),
    waits("wait_on_page_bit", Way::Device, "mm/filemap.c, up to 5.15"),
    waits("wait_on_page_bit_killable", Way::Device, "mm/filemap.c, up to 5.15"),
    waits("put_and_wait_on_page_locked", Way::Device, "mm/filemap.c, up to 5.15"),
    waits("__lock_page", Way::Device, "mm/filemap.c, up to 5.15"),
    waits("__lock_page_killable", Way::Device, "mm/filemap.c, up to 5.15"),
    waits("__iomap_dio_rw", Way::Direct, "6.18"),
    waits("blkdev_direct_IO", Way::Direct, "block/fops.c"),
    waits("__blkdev_direct_IO", Way::Direct, "block/fops.c"),
    waits("__blkdev_direct_IO_simple", Way::Direct, "block/fops.c"),
    waits("__blockdev_direct_IO", Way::Direct, "fs/direct-io.c"),
    waits("wait_for_completion", Way::Completion, "6.18"),
    waits("__wait_for_common", Way::Completion, "6.12"),
    waits("wait_for_completion_io", Way::Completion, "6.18"),
    waits("wait_for_completion_io_timeout", Way::Completion, "6.18"),
    waits("wait_for_completion_state", Way::Completion, "6.18"),
    waits("wait_for_completion_killable", Way::Completion, "kernel/sched/completion.c"),

    // Reading from a device: the page cache, then each file system's metadata.
    when("filemap_get_pages", Way::Device, Cause::DeviceRead, "6.18"),
    when("filemap_update_page", Way::Device, Cause::DeviceRead, "mm/filemap.c"),
    when("filemap_fault", Way::Device, Cause::DeviceRead, "6.18"),
    when("filemap_read", Way::Device, Cause::DeviceRead, "6.18"),
    when("filemap_read_folio", Way::Device, Cause::DeviceRead, "mm/filemap.c"),
    when("do_read_cache_folio", Way::Device, Cause::DeviceRead, "mm/filemap.c"),
    when("do_read_cache_page", Way::Device, Cause::DeviceRead, "mm/filemap.c, up to 5.15"),
    when("generic_file_buffered_read", Way::Device, Cause::DeviceRead, "mm/filemap.c, up to 5.11"),
    when("__bread_gfp", Way::Device, Cause::DeviceRead, "fs/buffer.c"),
    when("__bh_read", Way::Device, Cause::DeviceRead, "fs/buffer.c"),
    when("__block_write_begin_int", Way::Device, Cause::DeviceRead, "fs/buffer.c"),
    when("find_get_block_common", Way::Device, Cause::DeviceRead, "6.18"),
    when("bdev_getblk", Way::Device, Cause::DeviceRead, "6.18"),
    when("ext4_read_bh", Way::Device, Cause::DeviceRead, "6.18"),
    when("ext4_read_bh_lock", Way::Device, Cause::DeviceRead, "fs/ext4/super.c"),
    when("ext4_bread", Way::Device, Cause::DeviceRead, "6.18"),
    when("ext4_bread_batch", Way::Device, Cause::DeviceRead, "fs/ext4/inode.c"),
    when("__ext4_find_entry", Way::Device, Cause::DeviceRead, "6.18"),
    when("__ext4_get_inode_loc", Way::Device, Cause::DeviceRead, "6.18"),
    when("ext4_wait_block_bitmap", Way::Device, Cause::DeviceRead, "6.18"),
    when("ext4_read_block_bitmap_nowait", Way::Device, Cause::DeviceRead, "6.18"),
    when("ext4_read_inode_bitmap", Way::Device, Cause::DeviceRead, "6.18"),
    when("ext4_block_write_begin", Way::Device, Cause::DeviceRead, "6.18"),
    when("ext4_mpage_readpages", Way::Device, Cause::DeviceRead, "fs/ext4/readpage.c"),
    when("ext2_get_inode", Way::Device, Cause::DeviceRead, "fs/ext2/inode.c"),
    when("iomap_write_begin", Way::Device, Cause::DeviceRead, "fs/iomap/buffered-io.c"),
    // The part of a block that is not written is read by `submit_bio_wait`.
    when("iomap_write_begin", Way::Completion, Cause::DeviceRead, "fs/iomap/buffered-io.c"),
    when("read_extent_buffer_pages", Way::Device, Cause::DeviceRead, "6.18"),
    when("btrfs_read_folio", Way::Device, Cause::DeviceRead, "fs/btrfs/extent_io.c"),
    // `xfs_buf_iowait` waits for writes, too (`xfs_bwrite`).
    when("xfs_buf_read_map", Way::Completion, Cause::DeviceRead, "6.18"),
    when("xfs_buf_read_uncached", Way::Completion, Cause::DeviceRead, "fs/xfs/xfs_buf.c"),
    when("squashfs_bio_read", Way::Completion, Cause::DeviceRead, "fs/squashfs/block.c"),
    is("btrfs_caching_ctl_wait_done", Cause::DeviceRead, "6.18"),
    is("btrfs_wait_block_group_cache_progress", Cause::DeviceRead, "6.18"),
    when("z_erofs_runqueue", Way::Completion, Cause::DeviceRead, "fs/erofs/zdata.c"),

    // Direct I/O: the caller says which way the data goes.
    when("ext4_file_read_iter", Way::Direct, Cause::DeviceRead, "6.18"),
    when("xfs_file_read_iter", Way::Direct, Cause::DeviceRead, "6.18"),
    when("xfs_file_dio_read", Way::Direct, Cause::DeviceRead, "6.18"),
    when("btrfs_file_read_iter", Way::Direct, Cause::DeviceRead, "6.18"),
    when("btrfs_direct_read", Way::Direct, Cause::DeviceRead, "6.18"),
    when("blkdev_read_iter", Way::Direct, Cause::DeviceRead, "block/fops.c"),
    when("blkdev_read_iter", Way::Completion, Cause::DeviceRead, "block/fops.c, by submit_bio_wait"),
    when("vfs_read", Way::Direct, Cause::DeviceRead, "6.18"),
    when("vfs_readv", Way::Direct, Cause::DeviceRead, "fs/read_write.c"),
    when("io_read", Way::Direct, Cause::DeviceRead, "io_uring/rw.c"),
    when("aio_read", Way::Direct, Cause::DeviceRead, "fs/aio.c"),
    when("ext4_file_write_iter", Way::Direct, Cause::DeviceWrite, "6.18"),
    when("xfs_file_write_iter", Way::Direct, Cause::DeviceWrite, "6.18"),
    when("btrfs_do_write_iter", Way::Direct, Cause::DeviceWrite, "fs/btrfs/file.c"),
    when("blkdev_write_iter", Way::Direct, Cause::DeviceWrite, "block/fops.c"),
    when("blkdev_write_iter", Way::Completion, Cause::DeviceWrite, "block/fops.c, by submit_bio_wait"),
    when("vfs_write", Way::Direct, Cause::DeviceWrite, "6.18"),
    when("vfs_writev", Way::Direct, Cause::DeviceWrite, "fs/read_write.c"),
    when("io_write", Way::Direct, Cause::DeviceWrite, "io_uring/rw.c"),
    when("aio_write", Way::Direct, Cause::DeviceWrite, "fs/aio.c"),
    is("inode_dio_wait", Cause::DeviceWrite, "fs/inode.c"),

    // Writing to a device.
    is("folio_wait_writeback", Cause::DeviceWrite, "6.18"),
    is("wait_on_page_writeback", Cause::DeviceWrite, "mm/page-writeback.c, up to 5.15"),
    is("__filemap_fdatawait_range", Cause::DeviceWrite, "6.18"),
    is("folio_wait_stable", Cause::DeviceWrite, "mm/page-writeback.c"),
    is("wb_wait_for_completion", Cause::DeviceWrite, "6.18"),
    is("sync_inodes_sb", Cause::DeviceWrite, "6.18"),
    is("inode_wait_for_writeback", Cause::DeviceWrite, "fs/fs-writeback.c"),
    is("writeback_single_inode", Cause::DeviceWrite, "fs/fs-writeback.c"),
    when("__sync_dirty_buffer", Way::Device, Cause::DeviceWrite, "fs/buffer.c"),
    when("write_all_supers", Way::Device, Cause::DeviceWrite, "6.18"),
    when("btrfs_btree_wait_writeback_range", Way::Device, Cause::DeviceWrite, "6.18"),
    is("btrfs_start_ordered_extent_nowriteback", Cause::DeviceWrite, "6.18"),
    is("btrfs_start_ordered_extent", Cause::DeviceWrite, "fs/btrfs/ordered-data.c"),
    is("btrfs_wait_ordered_range", Cause::DeviceWrite, "6.18"),
    is("btrfs_wait_ordered_extents", Cause::DeviceWrite, "fs/btrfs/ordered-data.c"),
    when("xfs_bwrite", Way::Completion, Cause::DeviceWrite, "fs/xfs/xfs_buf.c"),
    when("xfs_buf_delwri_submit", Way::Completion, Cause::DeviceWrite, "fs/xfs/xfs_buf.c"),
    is("xfs_ail_push_all_sync", Cause::DeviceWrite, "fs/xfs/xfs_trans_ail.c"),

    // The journal's own thread writes: blocks of data and of the journal, and the block that closes a commit.
    when("jbd2_journal_commit_transaction", Way::Device, Cause::DeviceWrite, "6.18"),
    when("journal_finish_inode_data_buffers", Way::Device, Cause::DeviceWrite, "fs/jbd2/commit.c"),
    when("xfs_buf_delwri_submit_buffers", Way::Completion, Cause::DeviceWrite, "fs/xfs/xfs_buf.c"),

    // Flushing a device's write cache.
    is("blkdev_issue_flush", Cause::DeviceFlush, "6.18"),
    when("write_all_supers", Way::Completion, Cause::DeviceFlush, "6.18"),
    when("barrier_all_devices", Way::Completion, Cause::DeviceFlush, "fs/btrfs/disk-io.c"),

    // Journals and logs.
    is("jbd2_log_wait_commit", Cause::Journal, "6.18"),
    is("jbd2_journal_force_commit", Cause::Journal, "fs/jbd2/journal.c"),
    is("wait_transaction_locked", Cause::Journal, "fs/jbd2/transaction.c"),
    is("wait_transaction_switching", Cause::Journal, "fs/jbd2/transaction.c"),
    is("add_transaction_credits", Cause::Journal, "fs/jbd2/transaction.c"),
    is("start_this_handle", Cause::Journal, "fs/jbd2/transaction.c"),
    is("do_get_write_access", Cause::Journal, "fs/jbd2/transaction.c"),
    // Whoever ends a synchronous change waits a little, so that others join its commit, and then for the commit.
    is("jbd2_journal_stop", Cause::Journal, "fs/jbd2/transaction.c"),
    is("jbd2_journal_wait_updates", Cause::Journal, "fs/jbd2/transaction.c, from 5.18"),
    is("__jbd2_log_wait_for_space", Cause::Journal, "fs/jbd2/checkpoint.c"),
    is("jbd2_log_do_checkpoint", Cause::Journal, "fs/jbd2/checkpoint.c"),
    is("ext4_fc_commit", Cause::Journal, "fs/ext4/fast_commit.c"),
    is("jbd2_fc_wait_bufs", Cause::Journal, "fs/jbd2/journal.c"),
    is("xlog_wait_on_iclog", Cause::Journal, "6.18"),
    is("xlog_cil_force_seq", Cause::Journal, "6.18"),
    is("xlog_cil_push_now", Cause::Journal, "6.18"),
    is("xlog_cil_order_write", Cause::Journal, "fs/xfs/xfs_log_cil.c"),
    // Until the log's worker has taken what was committed in memory: of that there is too much, or it is being taken.
    is("xlog_cil_push_background", Cause::Journal, "fs/xfs/xfs_log_cil.c"),
    is("xlog_cil_commit", Cause::Journal, "fs/xfs/xfs_log_cil.c"),
    is("xlog_state_get_iclog_space", Cause::Journal, "fs/xfs/xfs_log.c"),
    is("xlog_grant_head_wait", Cause::Journal, "fs/xfs/xfs_log.c"),
    is("xlog_grant_head_check", Cause::Journal, "fs/xfs/xfs_log.c"),
    is("xfs_log_force", Cause::Journal, "fs/xfs/xfs_log.c"),
    is("xfs_log_force_seq", Cause::Journal, "fs/xfs/xfs_log.c"),
    is("__xfs_iunpin_wait", Cause::Journal, "fs/xfs/xfs_inode.c"),
    is("xfs_buf_wait_unpin", Cause::Journal, "fs/xfs/xfs_buf.c"),
    is("btrfs_sync_log", Cause::Journal, "fs/btrfs/tree-log.c"),
    is("wait_log_commit", Cause::Journal, "fs/btrfs/tree-log.c"),
    is("wait_current_trans", Cause::Journal, "fs/btrfs/transaction.c"),
    is("wait_for_commit", Cause::Journal, "fs/btrfs/transaction.c"),
    is("btrfs_commit_transaction", Cause::Journal, "fs/btrfs/transaction.c"),

    // The lock of an inode: a semaphore, taken by one of these.
    when("do_unlinkat", Way::Lock, Cause::InodeLock, "6.18"),
    when("start_dirop", Way::Lock, Cause::InodeLock, "fs/namei.c, from 6.19"),
    when("__start_dirop", Way::Lock, Cause::InodeLock, "fs/namei.c, from 6.19"),
    when("filename_unlinkat", Way::Lock, Cause::InodeLock, "fs/namei.c, from 7.0"),
    when("filename_rmdir", Way::Lock, Cause::InodeLock, "fs/namei.c, from 7.0"),
    when("filename_renameat2", Way::Lock, Cause::InodeLock, "fs/namei.c, from 7.0"),
    when("path_openat", Way::Lock, Cause::InodeLock, "6.18"),
    when("open_last_lookups", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("lookup_slow", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("walk_component", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("filename_create", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("do_rmdir", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("vfs_rmdir", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("vfs_unlink", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("lock_rename", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("do_renameat2", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("vfs_rename", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("vfs_link", Way::Lock, Cause::InodeLock, "fs/namei.c"),
    when("lock_two_nondirectories", Way::Lock, Cause::InodeLock, "fs/inode.c"),
    when("iterate_dir", Way::Lock, Cause::InodeLock, "fs/readdir.c"),
    when("chmod_common", Way::Lock, Cause::InodeLock, "fs/open.c"),
    when("chown_common", Way::Lock, Cause::InodeLock, "fs/open.c"),
    when("do_truncate", Way::Lock, Cause::InodeLock, "fs/open.c"),
    when("vfs_utimes", Way::Lock, Cause::InodeLock, "fs/utimes.c"),
    when("vfs_setxattr", Way::Lock, Cause::InodeLock, "fs/xattr.c"),
    when("ext4_buffered_write_iter", Way::Lock, Cause::InodeLock, "fs/ext4/file.c"),
    when("ext4_dio_write_iter", Way::Lock, Cause::InodeLock, "fs/ext4/file.c"),
    when("ext4_dio_read_iter", Way::Lock, Cause::InodeLock, "fs/ext4/file.c"),
    // The two above, where the compiler put them into their only callers, as in 6.18.
    when("ext4_file_write_iter", Way::Lock, Cause::InodeLock, "fs/ext4/file.c"),
    when("ext4_file_read_iter", Way::Lock, Cause::InodeLock, "fs/ext4/file.c"),
    when("xfs_ilock", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_inode.c"),
    when("xfs_ilock_for_iomap", Way::Lock, Cause::InodeLock, "6.1"),
    when("xfs_vn_update_time", Way::Lock, Cause::InodeLock, "6.1"),
    when("xfs_ilock_iocb", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_file.c"),
    // `xfs_ilock` ends with the lock that it takes last, so that compilers let it jump there: what remains is who called it.
    when("xfs_ilock_data_map_shared", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_inode.c"),
    when("xfs_ilock_attr_map_shared", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_inode.c"),
    when("xfs_lock_inodes", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_inode.c"),
    when("xfs_lock_two_inodes", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_inode.c"),
    when("xfs_create", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_inode.c"),
    when("xfs_trans_alloc_inode", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_trans.c"),
    when("xfs_trans_alloc_ichange", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_trans.c"),
    when("xfs_trans_alloc_dir", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_trans.c"),
    when("xfs_file_fsync", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_file.c"),
    when("xfs_map_blocks", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_aops.c"),
    when("xfs_read_iomap_begin", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_iomap.c"),
    when("xfs_direct_write_iomap_begin", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_iomap.c"),
    when("xfs_buffered_write_iomap_begin", Way::Lock, Cause::InodeLock, "fs/xfs/xfs_iomap.c"),
    when("btrfs_inode_lock", Way::Lock, Cause::InodeLock, "fs/btrfs/inode.c"),
    when("generic_file_write_iter", Way::Lock, Cause::InodeLock, "mm/filemap.c"),
    when("shmem_file_write_iter", Way::Lock, Cause::InodeLock, "mm/shmem.c, from 6.6"),

    // The lock of a metadata buffer.
    when("xfs_buf_lock", Way::Lock, Cause::BufferLock, "6.18"),
    when("xfs_buf_find_lock", Way::Lock, Cause::BufferLock, "6.18"),
    when("btrfs_tree_read_lock_nested", Way::Lock, Cause::BufferLock, "6.18"),
    when("btrfs_tree_lock_nested", Way::Lock, Cause::BufferLock, "6.18"),
    when("__btrfs_tree_read_lock", Way::Lock, Cause::BufferLock, "6.1"),
    when("__btrfs_tree_lock", Way::Lock, Cause::BufferLock, "6.1"),
    when("__lock_buffer", Way::Device, Cause::BufferLock, "fs/buffer.c"),

    // Other locks, which are not sleeping locks of the kernel.
    is("locks_lock_inode_wait", Cause::Lock, "6.18"),
    is("fcntl_setlk", Cause::Lock, "fs/locks.c"),
    is("__break_lease", Cause::Lock, "fs/locks.c"),
    is("inode_wait", Cause::Lock, "fs/inode.c, up to 3.15"),
    is("__wait_on_freeing_inode", Cause::Lock, "fs/inode.c"),

    // Until no CPU can see any more what was there before: nobody holds a lock.
    is("synchronize_rcu", Cause::Rcu, "kernel/rcu/tree.c"),
    is("synchronize_rcu_normal", Cause::Rcu, "6.18"),
    is("synchronize_rcu_expedited", Cause::Rcu, "6.18"),
    is("__wait_rcu_gp", Cause::Rcu, "kernel/rcu/update.c"),
    is("rcu_barrier", Cause::Rcu, "kernel/rcu/tree.c"),
    is("__synchronize_srcu", Cause::Rcu, "kernel/rcu/srcutree.c"),
    is("rcu_gp_fqs_loop", Cause::Rcu, "6.18"),
    is("rcu_gp_kthread", Cause::Rcu, "6.18"),
    is("synchronize_rcu_expedited_wait", Cause::Rcu, "kernel/rcu/tree_exp.h"),
    is("synchronize_rcu_expedited_wait_once", Cause::Rcu, "kernel/rcu/tree_exp.h"),

    // Made to wait because too much is dirty or reserved.
    is("balance_dirty_pages", Cause::WriteThrottle, "mm/page-writeback.c"),
    is("balance_dirty_pages_ratelimited_flags", Cause::WriteThrottle, "mm/page-writeback.c"),
    is("__reserve_bytes", Cause::WriteThrottle, "6.18"),
    is("handle_reserve_ticket", Cause::WriteThrottle, "fs/btrfs/space-info.c"),
    is("btrfs_throttle", Cause::WriteThrottle, "fs/btrfs/transaction.c"),

    // A full queue: of the block layer, of an I/O controller, of XFS's background freeing of inodes.
    is("rq_qos_wait", Cause::QueueFull, "6.18"),
    is("wbt_wait", Cause::QueueFull, "6.18"),
    is("blk_mq_get_tag", Cause::QueueFull, "block/blk-mq-tag.c"),
    is("__bio_queue_enter", Cause::QueueFull, "block/blk-core.c"),
    is("blk_throtl_bio", Cause::QueueFull, "block/blk-throttle.c"),
    is("get_request_wait", Cause::QueueFull, "block/blk-core.c, up to 3.6"),
    is("ioc_rqos_throttle", Cause::QueueFull, "block/blk-iocost.c"),
    // On the way out of a call: what the command has in debt at its cgroup's io.cost or io.latency.
    is("blkcg_maybe_throttle_current", Cause::QueueFull, "block/blk-cgroup.c"),
    when("xfs_inodegc_queue", Way::Completion, Cause::QueueFull, "fs/xfs/xfs_icache.c"),
    when("xfs_fs_destroy_inode", Way::Completion, Cause::QueueFull, "fs/xfs/xfs_super.c"),
    when("destroy_inode", Way::Completion, Cause::QueueFull, "6.18"),

    // Servers.
    is("request_wait_answer", Cause::FuseServer, "6.18"),
    is("__fuse_request_send", Cause::FuseServer, "fs/fuse/dev.c"),
    is("__fuse_simple_request", Cause::FuseServer, "fs/fuse/dev.c"),
    is("fuse_get_req", Cause::FuseServer, "fs/fuse/dev.c"),
    // Until the server has written what it was given, and for direct I/O.
    is("fuse_set_nowrite", Cause::FuseServer, "fs/fuse/dir.c"),
    when("fuse_direct_IO", Way::Completion, Cause::FuseServer, "fs/fuse/file.c"),
    is("rpc_wait_bit_killable", Cause::RemoteServer, "net/sunrpc/sched.c"),
    is("__rpc_execute", Cause::RemoteServer, "net/sunrpc/sched.c"),
    is("nfs_wait_bit_killable", Cause::RemoteServer, "fs/nfs/inode.c"),
    is("nfs_wait_client_init_complete", Cause::RemoteServer, "fs/nfs/client.c"),
    // Until the server has on its disk what was written, in `fsync` and `close`, and for direct I/O.
    is("wait_on_commit", Cause::RemoteServer, "fs/nfs/write.c"),
    is("__nfs_commit_inode", Cause::RemoteServer, "fs/nfs/write.c"),
    when("nfs_file_direct_read", Way::Completion, Cause::RemoteServer, "fs/nfs/direct.c"),
    when("nfs_file_direct_write", Way::Completion, Cause::RemoteServer, "fs/nfs/direct.c"),
    is("wait_for_response", Cause::RemoteServer, "fs/smb/client/transport.c"),
    is("compound_send_recv", Cause::RemoteServer, "fs/smb/client/transport.c"),
    is("p9_client_rpc", Cause::RemoteServer, "6.18"),
    is("p9_virtio_zc_request", Cause::RemoteServer, "6.18"),
    is("p9_virtio_request", Cause::RemoteServer, "net/9p/trans_virtio.c"),
    is("p9_client_zc_rpc", Cause::RemoteServer, "net/9p/client.c"),
    is("ceph_mdsc_wait_request", Cause::RemoteServer, "fs/ceph/mds_client.c"),
    is("vbg_hgcm_call", Cause::RemoteServer, "drivers/virt/vboxguest/vboxguest_utils.c"),

    // Other processes and threads.
    is("anon_pipe_read", Cause::Pipe, "6.18"),
    is("anon_pipe_write", Cause::Pipe, "6.18"),
    is("fifo_pipe_read", Cause::Pipe, "fs/pipe.c"),
    is("fifo_pipe_write", Cause::Pipe, "fs/pipe.c"),
    is("pipe_read", Cause::Pipe, "fs/pipe.c, up to 6.14"),
    is("pipe_write", Cause::Pipe, "fs/pipe.c, up to 6.14"),
    is("pipe_wait_readable", Cause::Pipe, "fs/pipe.c"),
    is("pipe_wait_writable", Cause::Pipe, "fs/pipe.c"),
    is("wait_for_partner", Cause::Pipe, "fs/pipe.c"),
    is("unix_stream_read_generic", Cause::Socket, "6.18"),
    is("unix_stream_data_wait", Cause::Socket, "net/unix/af_unix.c"),
    is("unix_wait_for_peer", Cause::Socket, "net/unix/af_unix.c"),
    is("unix_stream_connect", Cause::Socket, "net/unix/af_unix.c"),
    is("unix_accept", Cause::Socket, "net/unix/af_unix.c"),
    is("sock_alloc_send_pskb", Cause::Socket, "net/core/sock.c"),
    is("sk_wait_data", Cause::Socket, "6.18"),
    is("sk_stream_wait_memory", Cause::Socket, "net/core/stream.c"),
    is("sk_stream_wait_connect", Cause::Socket, "net/core/stream.c"),
    is("tcp_recvmsg", Cause::Socket, "6.18"),
    is("inet_csk_accept", Cause::Socket, "6.18"),
    is("inet_wait_for_connect", Cause::Socket, "net/ipv4/af_inet.c"),
    is("__inet_stream_connect", Cause::Socket, "net/ipv4/af_inet.c"),
    is("__skb_wait_for_more_packets", Cause::Socket, "net/core/datagram.c"),
    is("vsock_connectible_wait_data", Cause::Socket, "net/vmw_vsock/af_vsock.c"),
    is("vsock_accept", Cause::Socket, "net/vmw_vsock/af_vsock.c"),
    is("futex_do_wait", Cause::Futex, "6.18"),
    is("futex_wait_queue", Cause::Futex, "kernel/futex/waitwake.c, up to 6.15"),
    is("futex_wait_queue_me", Cause::Futex, "kernel/futex.c, up to 5.15"),
    is("futex_wait", Cause::Futex, "6.18"),
    is("futex_wait_multiple", Cause::Futex, "kernel/futex/waitwake.c"),
    is("futex_lock_pi", Cause::Futex, "kernel/futex/pi.c"),
    is("futex_wait_requeue_pi", Cause::Futex, "kernel/futex/requeue.c"),
    is("do_wait", Cause::Child, "6.18"),
    is("kernel_waitid", Cause::Child, "kernel/exit.c"),
    when("kernel_clone", Way::Completion, Cause::Child, "6.18"),
    is("do_nanosleep", Cause::Sleep, "6.18"),
    is("hrtimer_nanosleep", Cause::Sleep, "6.18"),
    is("alarm_timer_nsleep", Cause::Sleep, "kernel/time/alarmtimer.c"),
    is("do_poll", Cause::Poll, "fs/select.c"),
    is("do_sys_poll", Cause::Poll, "6.18"),
    is("do_select", Cause::Poll, "6.18"),
    is("poll_schedule_timeout", Cause::Poll, "6.18"),
    is("ep_poll", Cause::Poll, "fs/eventpoll.c"),
    is("do_epoll_wait", Cause::Poll, "6.18"),
    is("read_events", Cause::Poll, "fs/aio.c"),
    is("io_cqring_wait", Cause::Poll, "io_uring/io_uring.c"),
    is("do_sigtimedwait", Cause::Poll, "kernel/signal.c"),
    is("__do_sys_pause", Cause::Poll, "kernel/signal.c"),
    // The same function has these names, too: the kernel gives the first one in its table.
    is("__ia32_sys_pause", Cause::Poll, "kernel/signal.c"),
    is("__x64_sys_pause", Cause::Poll, "kernel/signal.c"),
    is("sigsuspend", Cause::Poll, "kernel/signal.c"),
    is("inotify_read", Cause::Poll, "fs/notify/inotify/inotify_user.c"),
    is("fanotify_read", Cause::Poll, "fs/notify/fanotify/fanotify_user.c"),
    is("eventfd_read", Cause::Poll, "fs/eventfd.c"),
    is("signalfd_read", Cause::Poll, "fs/signalfd.c, up to 6.9"),
    is("signalfd_read_iter", Cause::Poll, "fs/signalfd.c, from 6.10"),
    is("timerfd_read", Cause::Sleep, "fs/timerfd.c, up to 6.9"),
    is("timerfd_read_iter", Cause::Sleep, "fs/timerfd.c, from 6.10"),
    is("n_tty_read", Cause::Poll, "drivers/tty/n_tty.c"),

    // Memory.
    is("shrink_node", Cause::Memory, "mm/vmscan.c"),
    is("shrink_lruvec", Cause::Memory, "mm/vmscan.c"),
    is("do_try_to_free_pages", Cause::Memory, "mm/vmscan.c"),
    is("reclaim_throttle", Cause::Memory, "mm/vmscan.c"),
    is("throttle_direct_reclaim", Cause::Memory, "mm/vmscan.c"),
    is("try_to_compact_pages", Cause::Memory, "mm/compaction.c"),
    is("__alloc_pages_slowpath", Cause::Memory, "mm/page_alloc.c"),
    is("do_swap_page", Cause::Memory, "mm/memory.c"),
    is("swap_readpage", Cause::Memory, "mm/page_io.c"),
    is("swap_read_folio", Cause::Memory, "mm/page_io.c, from 6.9"),
    is("shmem_swapin_folio", Cause::Memory, "mm/shmem.c"),
    is("shmem_swapin_page", Cause::Memory, "mm/shmem.c, up to 5.18"),
    is("mem_cgroup_handle_over_high", Cause::Memory, "mm/memcontrol.c"),
    is("__mem_cgroup_handle_over_high", Cause::Memory, "mm/memcontrol.c"),
    is("mem_cgroup_oom_synchronize", Cause::Memory, "6.18"),
    is("psi_memstall_enter", Cause::Memory, "kernel/sched/psi.c"),
    is("mempool_alloc", Cause::Memory, "mm/mempool.c"),
    is("mempool_alloc_noprof", Cause::Memory, "mm/mempool.c, from 6.10"),

    // Held by somebody.
    is("do_signal_stop", Cause::Stopped, "6.18"),
    is("ptrace_stop", Cause::Stopped, "kernel/signal.c"),
    is("do_freezer_trap", Cause::Stopped, "kernel/signal.c"),
    is("__refrigerator", Cause::Stopped, "kernel/freezer.c"),
    is("do_coredump", Cause::Stopped, "fs/coredump.c"),
    is("vfs_coredump", Cause::Stopped, "fs/coredump.c, from 6.17"),
];
