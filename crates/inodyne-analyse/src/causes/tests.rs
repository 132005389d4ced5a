//! Real stacks and what they mean.
//!
//! The stacks were taken at `sched_switch`, on 6.18 unless stated otherwise, while `find`, `rm`, `tar`, `dd` and small
//! programs ran on ext4, xfs and btrfs; frames of the entry from user mode are left out.

use inodyne_model::Nanos;
use inodyne_model::stack::Frame;

use super::table::{Means, RULES, Rule};
use super::*;

fn stack(id: u64, functions: &str) -> Stack {
    let frames = functions.split(' ').map(|name| Frame::Symbol(name.to_owned())).collect();
    Stack { id: StackId(id), frames, truncated: false }
}

fn wait(waker_stack: u64) -> Wait {
    let (waker, waker_stack) = (Waker::KernelThread, StackId(waker_stack));
    let (ns, max_ns) = (Nanos(5), Nanos(5));
    Wait { thread: 1, syscall: None, stack: StackId(1), waker, waker_stack, ns, count: 1, max_ns, began_before: false }
}

/// The cause of a wait in the first stack that was ended by a thread in the second one.
fn cause(waits: &str, wakes: &str) -> Cause {
    let stacks = [stack(1, waits), stack(2, wakes)];
    Classifier::new(&stacks).cause(&wait(2))
}

/// The same for a wait that an interrupt ended.
fn cause_by_interrupt(waits: &str, interrupt: &str) -> Cause {
    let stacks = [stack(1, waits), stack(2, interrupt)];
    Classifier::new(&stacks).cause(&Wait { waker: Waker::Interrupt, ..wait(2) })
}

#[rustfmt::skip]
const SEEN: &[(Cause, &str)] = &[
    // ext4.
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit __ext4_get_inode_loc __ext4_get_inode_loc_noinmem __ext4_iget ext4_lookup __lookup_slow walk_component path_lookupat filename_lookup vfs_statx vfs_fstatat __do_sys_newfstatat"),
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit __ext4_find_entry ext4_lookup __lookup_slow walk_component link_path_walk path_lookupat filename_lookup user_path_at do_faccessat __x64_sys_faccessat2"),
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit ext4_read_bh ext4_bread __ext4_read_dirblock htree_dirblock_to_tree ext4_htree_fill_tree ext4_readdir iterate_dir __x64_sys_getdents64"),
    (Cause::DeviceRead, "__schedule schedule io_schedule __folio_lock find_get_block_common bdev_getblk ext4_getblk ext4_bread ext4_readdir iterate_dir __x64_sys_getdents64"),
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit ext4_wait_block_bitmap ext4_mb_init_cache ext4_mb_init_group ext4_mb_load_buddy_gfp ext4_free_blocks ext4_ext_remove_space ext4_ext_truncate ext4_truncate ext4_evict_inode evict do_unlinkat __x64_sys_unlinkat"),
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit_lock out_of_line_wait_on_bit_lock ext4_read_block_bitmap_nowait ext4_mb_init_cache ext4_mb_init_group ext4_mb_scan_group ext4_mb_regular_allocator ext4_mb_new_blocks ext4_ext_map_blocks ext4_map_blocks ext4_iomap_begin iomap_iter __iomap_dio_rw iomap_dio_rw ext4_file_write_iter vfs_write ksys_write"),
    (Cause::DeviceWrite, "__schedule schedule io_schedule folio_wait_bit folio_wait_writeback __filemap_fdatawait_range file_write_and_wait_range ext4_sync_file do_fsync __x64_sys_fsync"),
    (Cause::DeviceWrite, "__schedule schedule wb_wait_for_completion __writeback_inodes_sb_nr try_to_writeback_inodes_sb ext4_nonda_switch ext4_da_write_begin generic_perform_write ext4_buffered_write_iter vfs_write ksys_write"),
    (Cause::DeviceWrite, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit jbd2_journal_commit_transaction kjournald2 kthread ret_from_fork"),
    (Cause::Journal, "__schedule schedule jbd2_log_wait_commit ext4_sync_file do_fsync __x64_sys_fsync"),
    (Cause::DeviceRead, "__schedule schedule schedule_timeout io_schedule_timeout __iomap_dio_rw iomap_dio_rw ext4_file_read_iter vfs_read ksys_read"),
    (Cause::DeviceWrite, "__schedule schedule schedule_timeout io_schedule_timeout __iomap_dio_rw iomap_dio_rw ext4_file_write_iter vfs_write ksys_write"),
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit ext4_read_bh ext4_read_inode_bitmap __ext4_new_inode ext4_create path_openat do_filp_open do_sys_openat2 __x64_sys_openat"),
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit ext4_block_write_begin ext4_da_write_begin generic_perform_write ext4_buffered_write_iter vfs_write ksys_write"),
    // xfs.
    (Cause::DeviceRead, "__schedule schedule schedule_timeout wait_for_completion xfs_buf_iowait xfs_buf_read_map xfs_trans_read_buf_map xfs_imap_to_bp xfs_iget xfs_lookup xfs_vn_lookup __lookup_slow walk_component path_lookupat filename_lookup vfs_statx vfs_fstatat __do_sys_newfstatat"),
    (Cause::DeviceRead, "__schedule schedule schedule_timeout io_schedule_timeout __iomap_dio_rw iomap_dio_rw xfs_file_dio_read xfs_file_read_iter vfs_read ksys_read"),
    (Cause::DeviceWrite, "__schedule schedule schedule_timeout io_schedule_timeout __iomap_dio_rw iomap_dio_rw xfs_file_dio_write_aligned.constprop.0 xfs_file_write_iter vfs_write ksys_write"),
    (Cause::BufferLock, "__schedule schedule schedule_timeout __down_common down xfs_buf_lock xfs_buf_find_lock xfs_buf_get_map xfs_buf_read_map xfs_trans_read_buf_map xfs_read_agi xfs_iunlink xfs_dir_remove_child xfs_remove xfs_vn_unlink vfs_unlink do_unlinkat __x64_sys_unlink"),
    (Cause::Journal, "__schedule schedule schedule_timeout wait_for_completion __flush_workqueue xlog_cil_push_now.isra.0 xlog_cil_force_seq xfs_log_force_seq xfs_file_fsync do_fsync __x64_sys_fsync"),
    (Cause::Journal, "__schedule schedule xlog_wait_on_iclog xfs_log_force_seq xfs_file_fsync do_fsync __x64_sys_fsync"),
    (Cause::QueueFull, "__schedule schedule schedule_timeout wait_for_completion __flush_work destroy_inode do_unlinkat __x64_sys_unlink"),
    (Cause::QueueFull, "__schedule schedule io_schedule rq_qos_wait wbt_wait __rq_qos_throttle blk_mq_submit_bio __submit_bio submit_bio_noacct_nocheck iomap_ioend_writeback_submit iomap_writepages xfs_vm_writepages do_writepages filemap_fdatawrite_wbc __filemap_fdatawrite_range file_write_and_wait_range xfs_file_fsync do_fsync __x64_sys_fsync"),
    // btrfs.
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit read_extent_buffer_pages btrfs_read_extent_buffer read_block_for_search btrfs_search_slot btrfs_lookup_inode btrfs_read_locked_inode btrfs_iget btrfs_lookup_dentry btrfs_lookup __lookup_slow walk_component path_lookupat filename_lookup vfs_statx vfs_fstatat __do_sys_newfstatat"),
    (Cause::BufferLock, "__schedule schedule schedule_preempt_disabled rwsem_down_read_slowpath down_read btrfs_tree_read_lock_nested btrfs_read_lock_root_node btrfs_search_slot btrfs_lookup_dir_item __btrfs_unlink_inode btrfs_unlink vfs_unlink do_unlinkat __x64_sys_unlink"),
    (Cause::BufferLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write btrfs_tree_lock_nested btrfs_lock_root_node btrfs_search_slot btrfs_del_orphan_item btrfs_evict_inode evict do_unlinkat __x64_sys_unlink"),
    (Cause::DeviceRead, "__schedule schedule btrfs_wait_block_group_cache_progress find_free_extent btrfs_reserve_extent btrfs_alloc_tree_block btrfs_force_cow_block btrfs_cow_block btrfs_search_slot"),
    (Cause::DeviceRead, "__schedule schedule btrfs_caching_ctl_wait_done btrfs_cache_block_group btrfs_update_block_group __btrfs_free_extent.isra.0 __btrfs_run_delayed_refs btrfs_run_delayed_refs flush_space priority_reclaim_metadata_space __reserve_bytes btrfs_reserve_metadata_bytes"),
    (Cause::DeviceRead, "__schedule schedule schedule_timeout io_schedule_timeout __iomap_dio_rw iomap_dio_rw btrfs_direct_read btrfs_file_read_iter vfs_read ksys_read"),
    (Cause::DeviceWrite, "__schedule schedule btrfs_start_ordered_extent_nowriteback btrfs_wait_ordered_range btrfs_sync_file btrfs_do_write_iter vfs_write ksys_write"),
    (Cause::DeviceWrite, "__schedule schedule wb_wait_for_completion sync_inodes_sb __iterate_supers ksys_sync __ia32_sys_sync"),
    (Cause::DeviceFlush, "__schedule schedule schedule_timeout io_schedule_timeout wait_for_completion_io write_all_supers btrfs_sync_log btrfs_sync_file do_fsync __x64_sys_fsync"),
    (Cause::DeviceWrite, "__schedule schedule io_schedule folio_wait_bit write_all_supers btrfs_sync_log btrfs_sync_file do_fsync __x64_sys_fsync"),
    (Cause::DeviceWrite, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit btrfs_btree_wait_writeback_range __btrfs_wait_marked_extents btrfs_wait_tree_log_extents btrfs_sync_log btrfs_sync_file do_fsync __x64_sys_fsync"),
    (Cause::WriteThrottle, "__schedule schedule __reserve_bytes btrfs_reserve_metadata_bytes start_transaction btrfs_create_common path_openat do_filp_open do_sys_openat2 __x64_sys_openat"),
    (Cause::Lock, "__schedule schedule schedule_preempt_disabled __mutex_lock.constprop.0 btrfs_delete_delayed_dir_index __btrfs_unlink_inode btrfs_unlink vfs_unlink do_unlinkat __x64_sys_unlink"),
    (Cause::DeviceFlush, "__schedule schedule schedule_timeout io_schedule_timeout wait_for_completion_io_timeout submit_bio_wait blkdev_issue_flush __iterate_supers ksys_sync __ia32_sys_sync"),
    // Names of Linux 6.1.
    (Cause::BufferLock, "__schedule schedule schedule_preempt_disabled rwsem_down_read_slowpath down_read __btrfs_tree_read_lock btrfs_read_lock_root_node btrfs_search_slot btrfs_lookup_dir_item btrfs_lookup_dentry btrfs_lookup path_openat do_filp_open do_sys_openat2 __x64_sys_openat"),
    (Cause::BufferLock, "__schedule schedule rwsem_down_write_slowpath __btrfs_tree_lock btrfs_lock_root_node btrfs_search_slot btrfs_lookup_dir_item __btrfs_unlink_inode btrfs_unlink vfs_unlink do_unlinkat __x64_sys_unlink"),
    (Cause::InodeLock, "__schedule schedule rwsem_down_write_slowpath xfs_vn_update_time file_modified_flags xfs_file_write_checks xfs_file_buffered_write vfs_write ksys_write"),
    (Cause::InodeLock, "__schedule schedule rwsem_down_write_slowpath xfs_ilock_for_iomap xfs_buffered_write_iomap_begin iomap_iter iomap_file_buffered_write xfs_file_buffered_write vfs_write ksys_write"),
    // Linux 6.12, and the same with PREEMPT_RT.
    (Cause::DeviceFlush, "__schedule schedule schedule_timeout io_schedule_timeout __wait_for_common submit_bio_wait blkdev_issue_flush ext4_sync_file do_fsync __x64_sys_fsync"),
    (Cause::BufferLock, "__schedule rt_mutex_schedule __rt_mutex_slowlock_locked.constprop.0 rwbase_write_lock btrfs_tree_lock_nested btrfs_lock_root_node btrfs_search_slot btrfs_lookup_dir_item __btrfs_unlink_inode btrfs_unlink vfs_unlink do_unlinkat __x64_sys_unlink"),
    (Cause::InodeLock, "__schedule rt_mutex_schedule __rt_mutex_slowlock_locked.constprop.0 rwbase_write_lock ext4_buffered_write_iter vfs_write __x64_sys_pwrite64"),
    (Cause::InodeLock, "__schedule rt_mutex_schedule __rt_mutex_slowlock_locked.constprop.0 rwbase_write_lock path_openat do_filp_open do_sys_openat2 __x64_sys_openat"),
    (Cause::Lock, "__schedule schedule_rtlock rtlock_slowlock_locked rt_spin_lock loop_queue_rq __blk_mq_issue_directly blk_mq_plug_issue_direct blk_mq_flush_plug_list __blk_flush_plug blk_finish_plug __iomap_dio_rw iomap_dio_rw xfs_file_dio_write_aligned xfs_file_write_iter vfs_write __x64_sys_pwrite64"),
    (Cause::Lock, "__schedule schedule_rtlock rt_write_lock copy_process kernel_clone __do_sys_clone"),
    // The page cache, and locks of inodes.
    (Cause::DeviceRead, "__schedule schedule io_schedule folio_wait_bit_common filemap_get_pages filemap_read vfs_read ksys_read"),
    (Cause::DeviceRead, "__schedule schedule io_schedule folio_wait_bit_common filemap_fault __do_fault do_fault __handle_mm_fault handle_mm_fault exc_page_fault asm_exc_page_fault"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write do_unlinkat __x64_sys_unlink"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write path_openat do_filp_open do_sys_openat2 __x64_sys_openat"),
    (Cause::Lock, "__schedule schedule schedule_preempt_disabled rwsem_down_read_slowpath down_read do_exit __x64_sys_exit"),
    (Cause::Lock, "__schedule schedule locks_lock_inode_wait __do_sys_flock"),
    // Grace periods of RCU.
    (Cause::Rcu, "__schedule schedule schedule_timeout wait_for_completion synchronize_rcu_normal __x64_sys_membarrier"),
    (Cause::Rcu, "__schedule schedule synchronize_rcu_expedited namespace_unlock path_umount __x64_sys_umount"),
    (Cause::Rcu, "__schedule schedule schedule_timeout rcu_gp_fqs_loop rcu_gp_kthread kthread ret_from_fork"),
    (Cause::Rcu, "__schedule schedule rcu_gp_kthread kthread ret_from_fork"),
    // Servers: of FUSE, of virtiofs, and of 9p over virtio, in a virtual machine.
    (Cause::FuseServer, "__schedule schedule request_wait_answer __fuse_simple_request fuse_readdir_uncached iterate_dir __x64_sys_getdents64"),
    (Cause::FuseServer, "__schedule schedule request_wait_answer __fuse_simple_request fuse_do_setattr fuse_setattr notify_change chmod_common __x64_sys_fchmod"),
    (Cause::FuseServer, "__schedule schedule request_wait_answer __fuse_simple_request fuse_flush filp_flush __x64_sys_close"),
    (Cause::RemoteServer, "__schedule schedule p9_client_rpc p9_client_clunk v9fs_dentry_release v9fs_remove vfs_unlink do_unlinkat __x64_sys_unlinkat"),
    (Cause::RemoteServer, "__schedule schedule p9_client_rpc p9_client_write v9fs_issue_write netfs_end_issue_write netfs_unbuffered_write netfs_unbuffered_write_iter_locked netfs_unbuffered_write_iter vfs_write ksys_write"),
    (Cause::RemoteServer, "__schedule schedule p9_client_rpc p9_client_xattrwalk v9fs_fid_xattr_get v9fs_xattr_handler_get __vfs_getxattr cap_inode_need_killpriv security_inode_need_killpriv file_remove_privs_flags netfs_unbuffered_write_iter vfs_write ksys_write"),
    (Cause::RemoteServer, "__schedule schedule p9_virtio_zc_request p9_client_zc_rpc.constprop.0 p9_client_read_once p9_client_read v9fs_issue_read netfs_unbuffered_read_iter_locked netfs_unbuffered_read_iter vfs_read ksys_read"),
    // Other processes and threads, and time.
    (Cause::Pipe, "__schedule schedule anon_pipe_read vfs_read ksys_read"),
    (Cause::Pipe, "__schedule schedule anon_pipe_write vfs_write ksys_write"),
    (Cause::Socket, "__schedule schedule schedule_timeout unix_stream_read_generic unix_stream_recvmsg sock_recvmsg __sys_recvfrom __x64_sys_recvfrom"),
    (Cause::Socket, "__schedule schedule schedule_timeout wait_woken sk_wait_data tcp_recvmsg_locked tcp_recvmsg sock_recvmsg __sys_recvfrom __x64_sys_recvfrom"),
    (Cause::Socket, "__schedule schedule schedule_timeout inet_csk_accept inet_accept do_accept __sys_accept4 __x64_sys_accept4"),
    (Cause::Futex, "__schedule schedule futex_do_wait __futex_wait futex_wait do_futex __x64_sys_futex"),
    (Cause::Child, "__schedule schedule do_wait kernel_wait4"),
    (Cause::Child, "__schedule schedule schedule_timeout __wait_for_common wait_for_completion_state kernel_clone __x64_sys_vfork"),
    (Cause::Sleep, "__schedule schedule do_nanosleep hrtimer_nanosleep common_nsleep_timens __x64_sys_clock_nanosleep"),
    (Cause::Poll, "__schedule schedule schedule_hrtimeout_range_clock poll_schedule_timeout.constprop.0 do_select core_sys_select do_pselect.constprop.0 __x64_sys_pselect6"),
    (Cause::Poll, "__schedule schedule schedule_hrtimeout_range_clock poll_schedule_timeout.constprop.0 do_sys_poll __x64_sys_poll"),
    (Cause::Poll, "__schedule schedule schedule_hrtimeout_range_clock do_epoll_wait __x64_sys_epoll_wait"),
    (Cause::Memory, "__schedule schedule mem_cgroup_oom_synchronize pagefault_out_of_memory exc_page_fault asm_exc_page_fault"),
    (Cause::Stopped, "__schedule schedule do_signal_stop get_signal arch_do_signal_or_restart exit_to_user_mode_loop"),
    (Cause::Other, "__schedule schedule a_function_of_tomorrow vfs_read ksys_read"),
    (Cause::Other, "__schedule schedule schedule_timeout wait_for_completion __flush_work a_function_of_tomorrow"),
];

/// Stacks as they follow from the kernel's source, and from which functions Linux 6.18 has: a compiler puts one that is called from one
/// place there, and jumps to one that is called last.
#[rustfmt::skip]
const FOLLOW: &[(Cause, &str)] = &[
    // Locks of inodes.
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_read_slowpath down_read xfs_file_fsync do_fsync __x64_sys_fdatasync"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_read_slowpath down_read xfs_ilock_data_map_shared xfs_dir_lookup xfs_lookup xfs_vn_lookup __lookup_slow walk_component"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write xfs_buffered_write_iomap_begin iomap_iter iomap_file_buffered_write xfs_file_buffered_write vfs_write ksys_write"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write xfs_trans_alloc_dir xfs_remove xfs_vn_unlink vfs_unlink do_unlinkat __x64_sys_unlink"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write ext4_file_write_iter vfs_write __x64_sys_pwrite64"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_read_slowpath down_read ext4_file_read_iter vfs_read __x64_sys_pread64"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write shmem_file_write_iter vfs_write __x64_sys_pwrite64"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write lock_two_nondirectories vfs_rename do_renameat2 __x64_sys_rename"),
    (Cause::InodeLock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write vfs_link do_linkat __x64_sys_link"),
    (Cause::Lock, "__schedule schedule schedule_preempt_disabled __mutex_lock.constprop.0 ext4_orphan_add ext4_unlink vfs_unlink do_unlinkat __x64_sys_unlink"),
    // The rest of a block that is written in part.
    (Cause::DeviceRead, "__schedule schedule schedule_timeout io_schedule_timeout wait_for_completion_io_timeout submit_bio_wait iomap_read_folio_range iomap_write_begin iomap_file_buffered_write xfs_file_buffered_write vfs_write ksys_write"),
    (Cause::DeviceRead, "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit __block_write_begin_int block_write_begin ext2_write_begin generic_perform_write generic_file_write_iter vfs_write ksys_write"),
    // Buffers of XFS that are written at once: remote values of attributes.
    (Cause::DeviceWrite, "__schedule schedule schedule_timeout wait_for_completion xfs_buf_iowait xfs_bwrite xfs_attr_rmtval_set_value xfs_attr_set_iter xfs_attr_finish_item xfs_defer_finish_one __x64_sys_setxattr"),
    (Cause::DeviceRead, "__schedule schedule schedule_timeout wait_for_completion xfs_buf_iowait __xfs_buf_submit _xfs_buf_read xfs_buf_read_map xfs_trans_read_buf_map xfs_da_read_buf"),
    // Direct I/O on a block device, and on file systems without iomap.
    (Cause::DeviceRead, "__schedule schedule schedule_timeout io_schedule_timeout wait_for_completion_io_timeout submit_bio_wait __blkdev_direct_IO_simple blkdev_direct_IO blkdev_read_iter vfs_read ksys_read"),
    (Cause::DeviceWrite, "__schedule schedule schedule_timeout io_schedule_timeout wait_for_completion_io_timeout submit_bio_wait __blkdev_direct_IO_simple blkdev_direct_IO blkdev_write_iter vfs_write ksys_write"),
    (Cause::DeviceFlush, "__schedule schedule schedule_timeout io_schedule_timeout wait_for_completion_io_timeout submit_bio_wait blkdev_issue_flush blkdev_fsync blkdev_write_iter vfs_write ksys_write"),
    (Cause::DeviceWrite, "__schedule schedule io_schedule __blockdev_direct_IO fat_direct_IO generic_file_direct_write __generic_file_write_iter generic_file_write_iter vfs_write ksys_write"),
    // Pages that somebody else reads, and names of Linux 5.15.
    (Cause::DeviceRead, "__schedule schedule io_schedule __folio_lock_killable filemap_fault __do_fault do_fault __handle_mm_fault handle_mm_fault exc_page_fault asm_exc_page_fault"),
    (Cause::DeviceRead, "__schedule schedule io_schedule folio_wait_bit_killable filemap_read_folio filemap_get_pages filemap_read vfs_read ksys_read"),
    (Cause::DeviceRead, "__schedule schedule io_schedule wait_on_page_bit do_read_cache_page read_cache_page page_get_link vfs_readlink do_readlinkat __x64_sys_readlink"),
    (Cause::DeviceRead, "__schedule schedule io_schedule __lock_page_killable filemap_fault __do_fault do_fault __handle_mm_fault handle_mm_fault exc_page_fault asm_exc_page_fault"),
    // The log of XFS: it has too much in memory, or its worker takes what is there.
    (Cause::Journal, "__schedule schedule xlog_cil_commit __xfs_trans_commit xfs_trans_commit xfs_create xfs_generic_create lookup_open path_openat"),
    (Cause::Journal, "__schedule schedule schedule_preempt_disabled rwsem_down_read_slowpath down_read xlog_cil_commit __xfs_trans_commit xfs_trans_commit xfs_remove xfs_vn_unlink"),
    // What a tmpfs has in swap.
    (Cause::Memory, "__schedule schedule io_schedule __folio_lock shmem_swapin_folio shmem_get_folio_gfp shmem_file_read_iter vfs_read ksys_read"),
    // Servers that write.
    (Cause::FuseServer, "__schedule schedule fuse_set_nowrite fuse_flush filp_flush __x64_sys_close"),
    (Cause::FuseServer, "__schedule schedule schedule_timeout wait_for_completion fuse_direct_IO generic_file_direct_write fuse_file_write_iter vfs_write ksys_write"),
    (Cause::RemoteServer, "__schedule schedule __nfs_commit_inode nfs_file_fsync vfs_fsync_range do_fsync __x64_sys_fsync"),
    (Cause::RemoteServer, "__schedule schedule schedule_timeout wait_for_completion_killable nfs_file_direct_read nfs_file_read vfs_read ksys_read"),
    (Cause::Lock, "__schedule schedule schedule_preempt_disabled rwsem_down_write_slowpath down_write nfs_start_io_direct nfs_file_direct_write nfs_file_write vfs_write"),
    // Others, time, and signals.
    (Cause::Socket, "__schedule schedule schedule_timeout wait_woken __inet_stream_connect inet_stream_connect __sys_connect __x64_sys_connect"),
    (Cause::Poll, "__schedule schedule __ia32_sys_pause do_syscall_64 entry_SYSCALL_64_after_hwframe"),
    (Cause::Poll, "__schedule schedule signalfd_read_iter vfs_read ksys_read"),
    (Cause::Sleep, "__schedule schedule timerfd_read_iter vfs_read ksys_read"),
    (Cause::Stopped, "__schedule schedule get_signal arch_do_signal_or_restart exit_to_user_mode_loop"),
    (Cause::Stopped, "__schedule schedule schedule_timeout wait_for_completion_state call_usermodehelper_exec vfs_coredump get_signal arch_do_signal_or_restart"),
    (Cause::Other, "__schedule schedule a_function_of_tomorrow exit_files do_exit do_group_exit get_signal arch_do_signal_or_restart"),
];

#[test]
fn real_stacks_have_their_causes() {
    for (expected, functions) in SEEN {
        assert_eq!(cause(functions, "ttwu_do_activate"), *expected, "{functions}");
    }
}

#[test]
fn stacks_that_follow_from_the_source_have_their_causes() {
    for (expected, functions) in FOLLOW {
        assert_eq!(cause(functions, "ttwu_do_activate"), *expected, "{functions}");
    }
}

#[test]
fn a_buffer_lock_released_by_its_io_is_a_read() {
    let waits = "__schedule schedule schedule_timeout __down_common down xfs_buf_lock xfs_buf_find_lock xfs_buf_get_map \
                 xfs_buf_read_map xfs_trans_read_buf_map xfs_da_read_buf xfs_dir3_block_read xfs_readdir iterate_dir";
    let io = "try_to_wake_up up xfs_buf_ioend_work process_one_work worker_thread kthread ret_from_fork";
    let holder = "try_to_wake_up up xfs_buf_unlock xfs_trans_brelse xfs_iunlink xfs_remove vfs_unlink";
    assert_eq!(cause(waits, io), Cause::DeviceRead);
    assert_eq!(cause(waits, holder), Cause::BufferLock);
}

#[test]
fn a_page_that_a_server_brings_is_waited_for_because_of_the_server() {
    let waits =
        "__schedule schedule io_schedule folio_wait_bit_common filemap_get_pages filemap_read vfs_read ksys_read";
    let wakes = "try_to_wake_up wake_page_function __wake_up_common folio_wake_bit";
    let fuse = "fuse_readpages_end fuse_request_end fuse_dev_do_write fuse_dev_write vfs_write ksys_write";
    let virtiofs = "fuse_readpages_end fuse_request_end virtio_fs_request_complete virtio_fs_requests_done_work \
                    process_one_work worker_thread kthread ret_from_fork";
    let disk = "__read_end_io blk_update_request blk_mq_end_request virtblk_done vring_interrupt common_interrupt \
                asm_common_interrupt";
    assert_eq!(cause(waits, &format!("{wakes} {fuse}")), Cause::FuseServer);
    assert_eq!(cause(waits, &format!("{wakes} {virtiofs}")), Cause::FuseServer);
    // A disk's interrupt, whatever it broke into.
    assert_eq!(cause(waits, &format!("{wakes} {disk} {fuse}")), Cause::DeviceRead);
    let flushes = "__schedule schedule blk_wait_io submit_bio_wait blkdev_issue_flush ext4_sync_file do_fsync";
    assert_eq!(cause(flushes, &format!("{wakes} {fuse}")), Cause::DeviceFlush);
}

#[test]
fn an_interrupt_says_what_the_stack_does_not() {
    let reads = "__schedule schedule a_function_of_tomorrow vfs_read ksys_read";
    let writes = "__schedule schedule a_function_of_tomorrow vfs_write ksys_write";
    let disk = "try_to_wake_up wake_up_page bio_endio blk_update_request blk_mq_end_request handle_softirqs";
    let timer = "try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt";
    let network = "try_to_wake_up sock_def_readable tcp_data_queue tcp_rcv_established tcp_v4_rcv";
    assert_eq!(cause_by_interrupt(reads, disk), Cause::DeviceRead);
    assert_eq!(cause_by_interrupt(writes, disk), Cause::DeviceWrite);
    assert_eq!(cause_by_interrupt(reads, timer), Cause::Sleep);
    let nvme = "try_to_wake_up wake_up_page iomap_read_end_io blk_mq_end_request_batch nvme_irq common_interrupt";
    assert_eq!(cause_by_interrupt(reads, nvme), Cause::DeviceRead);
    assert_eq!(cause_by_interrupt(reads, network), Cause::Socket);
    assert_eq!(cause_by_interrupt(reads, "try_to_wake_up an_interrupt_of_tomorrow"), Cause::Other);
    // Where the stack decides, an interrupt changes nothing; nor does a waker that runs such a function but is no interrupt.
    let poll = "__schedule schedule schedule_hrtimeout_range_clock poll_schedule_timeout do_sys_poll __x64_sys_poll";
    assert_eq!(cause_by_interrupt(poll, timer), Cause::Poll);
    assert_eq!(cause(reads, disk), Cause::Other);
}

#[test]
fn a_delay_by_the_kernel_is_no_sleep_that_the_program_asked_for() {
    let timer = "try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt";
    for (expected, functions) in [
        // A directory of an ext4 that is mounted dirsync: the commit is to take others along.
        (Cause::Journal, "schedule_hrtimeout_range_clock jbd2_journal_stop __ext4_journal_stop ext4_create"),
        (Cause::QueueFull, "schedule_hrtimeout_range_clock blkcg_maybe_throttle_current exit_to_user_mode_loop"),
        (Cause::Memory, "schedule_timeout __alloc_pages_slowpath.constprop.0 __alloc_frozen_pages_noprof do_fault"),
        (Cause::Memory, "schedule_timeout io_schedule_timeout mempool_alloc_noprof bio_alloc_bioset submit_bh_wbc"),
    ] {
        let functions = format!("__schedule schedule {functions}");
        assert_eq!(cause_by_interrupt(&functions, timer), expected, "{functions}");
    }
}

#[test]
fn a_stack_that_was_not_kept_is_other() {
    assert_eq!(Classifier::new(&[]).cause(&wait(2)), Cause::Other);
}

/// Whether `seen` is the version of a kernel on which such a stack was observed.
fn is_a_version(seen: &str) -> bool {
    seen.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[test]
fn every_rule_stands_once_and_says_how_it_is_known() {
    for (at, rule) in RULES.iter().enumerate() {
        let way = |rule: &Rule| match rule.means {
            Means::When(way, _) => Some(way),
            Means::Is(_) | Means::Waits(_) => None,
        };
        let again = RULES[..at].iter().any(|other| other.symbol == rule.symbol && way(other) == way(rule));
        assert!(!again, "{} twice", rule.symbol);
        let known = is_a_version(rule.seen) || rule.seen.contains(".c") || rule.seen.contains(".h");
        assert!(known, "{}: {}", rule.symbol, rule.seen);
    }
}

#[test]
fn every_rule_marked_as_seen_is_in_a_stack_above() {
    for rule in RULES.iter().filter(|rule| is_a_version(rule.seen)) {
        let seen =
            SEEN.iter().any(|(_, functions)| functions.split(' ').any(|name| function_name(name) == rule.symbol));
        assert!(seen, "no stack shows {}", rule.symbol);
    }
}
