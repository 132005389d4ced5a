/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Files and directories used through a descriptor: how often and for what, how many bytes, how long. Only if enabled
 * (record_files); otherwise the verifier removes all of it from the programs as dead code.
 *
 * The descriptor is looked up when the call returns, and its file is identified by device, inode and generation. Its path is
 * built once, as the process sees it: up to the process's own root, across all mounts. A call whose descriptor was meanwhile
 * closed by another thread is counted as not kept, like one that finds the table full.
 */
#ifndef INODYNE_FILES_PROBE_H
#define INODYNE_FILES_PROBE_H

#include "../../bpf/file.h"
#include "../../bpf/maps.h"
#include "../../bpf/refuse.h"
#include "intf.h"

/* How many files to keep at most; 0: disabled. */
const volatile __u32 record_files = 0;

/* Rows added so far. */
__u32 files_begun;

/* Calls on files for which there was no room, or whose descriptor was gone. */
__u64 files_not_kept;

/* One entry unless enabled. Preallocated, like `paths`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct file_key);
	__type(value, struct file_sum);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct file_scratch);
} file_scratch SEC(".maps");

/* A call that takes descriptors: which argument is one (0: none) and what the call does with its file, and a second such pair. */
struct call_on_files {
	__u8 argument;
	__u8 use;
	__u8 second;
	__u8 second_use;
};

/* The descriptor is the call's result, not an argument. */
#define RESULT 6

static __always_inline struct call_on_files call_on_files(__u16 call)
{
	switch (call) {
	case __NR_open:
	case __NR_openat:
	case __NR_openat2:
		return (struct call_on_files){ .argument = RESULT, .use = USED_OPEN };
	case __NR_read:
	case __NR_pread64:
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
		return (struct call_on_files){ .argument = 1, .use = USED_READ };
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
		return (struct call_on_files){ .argument = 1, .use = USED_WRITE };
	case __NR_copy_file_range:
	case __NR_splice:
		return (struct call_on_files){ .argument = 1, .use = USED_READ, .second = 3, .second_use = USED_WRITE };
	case __NR_sendfile:
		return (struct call_on_files){ .argument = 2, .use = USED_READ, .second = 1, .second_use = USED_WRITE };
	case __NR_getdents64:
		return (struct call_on_files){ .argument = 1, .use = USED_LIST };
	case __NR_fsync:
	case __NR_fdatasync:
	case __NR_sync_file_range:
		return (struct call_on_files){ .argument = 1, .use = USED_SYNC };
	case __NR_mmap:
		return (struct call_on_files){ .argument = 5, .use = USED_MAP };
	case __NR_fstat:
	case __NR_lseek:
	case __NR_ftruncate:
	case __NR_fallocate:
	case __NR_fadvise64:
	case __NR_readahead:
	case __NR_flock:
		return (struct call_on_files){ .argument = 1, .use = USED_OTHERWISE };
	default:
		return (struct call_on_files){};
	}
}

/* One name, or one mount, on the way from a file up to the root. Returns 1 to stop: at the root, or if there is no more room. */
static long path_step(__u64 index, void *unused)
{
	__u32 zero = 0, at, length;
	struct file_scratch *scratch = bpf_map_lookup_elem(&file_scratch, &zero);
	struct dentry *dentry, *parent;
	struct mount *mount, *below;

	if (!scratch)
		return 1;
	dentry = (struct dentry *)scratch->dentry;
	mount = (struct mount *)scratch->mount;
	if (scratch->dentry == scratch->root_dentry && scratch->mount == scratch->root_mount)
		goto complete;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		below = BPF_CORE_READ(mount, mnt_parent);
		if (below == mount)
			goto complete;
		scratch->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
		scratch->mount = (__u64)below;
		return 0;
	}
	if (parent == dentry)
		goto complete;
	length = BPF_CORE_READ(dentry, d_name.len);
	at = scratch->at;
	if (length >= FILE_NAME_LONGEST || at <= length || at > FILE_PATH_LONGEST)
		return 1;
	at -= length;
	at &= FILE_PATH_LONGEST - 1;
	bpf_probe_read_kernel(scratch->whole + at, length & (FILE_NAME_LONGEST - 1), BPF_CORE_READ(dentry, d_name.name));
	at -= 1;
	if (at >= FILE_PATH_LONGEST)
		return 1;
	scratch->whole[at] = '/';
	scratch->at = at;
	scratch->dentry = (__u64)parent;
	return 0;
complete:
	scratch->complete = 1;
	return 1;
}

/* Prepares the row of a file that was not seen before, in `first` of the scratch. */
static __noinline int file_first_seen(struct file_scratch *scratch, struct file *file)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 to_mount = bpf_core_field_offset(struct mount, mnt);
	struct file_sum *first = &scratch->first;
	__u32 at, length;

	scratch->dentry = (__u64)BPF_CORE_READ(file, f_path.dentry);
	scratch->mount = (__u64)BPF_CORE_READ(file, f_path.mnt) - to_mount;
	scratch->root_dentry = (__u64)BPF_CORE_READ(task, fs, root.dentry);
	scratch->root_mount = (__u64)BPF_CORE_READ(task, fs, root.mnt) - to_mount;
	/* Room for the slash of the root itself. */
	scratch->at = FILE_PATH_LONGEST - 1;
	scratch->complete = 0;
	bpf_loop(FILE_NAMES, path_step, 0, 0);
	at = scratch->at;
	if (at >= FILE_PATH_LONGEST)
		return 0;
	length = FILE_PATH_LONGEST - 1 - at;
	if (!length) {
		at = 0;
		length = 1;
		scratch->whole[0] = '/';
	}
	first->cut = !scratch->complete;
	if (length >= FILE_PATH_KEPT) {
		at = FILE_PATH_LONGEST - FILE_PATH_KEPT;
		length = FILE_PATH_KEPT - 1;
		first->cut = 1;
	}
	first->length = length;
	bpf_probe_read_kernel(first->path, FILE_PATH_KEPT, scratch->whole + (at & (FILE_PATH_LONGEST - 1)));
	first->directory = (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFDIR;
	bpf_get_current_comm(first->comm, sizeof(first->comm));
	return 1;
}

/* Counts a use of the file behind a descriptor. False if it is not a file but a pipe, a socket or a terminal. */
static __noinline int file_used(struct thread *t, __u32 descriptor, __u32 use, __u64 bytes, __u64 wall)
{
	struct file *file = file_of((struct task_struct *)bpf_get_current_task(), descriptor);
	struct file_scratch *scratch;
	struct file_key key = {};
	struct file_sum *sum;
	struct inode *inode;
	__u32 kind, zero = 0;

	if (!t)
		return 0;
	if (!file)
		goto not_kept;
	inode = BPF_CORE_READ(file, f_inode);
	kind = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	if (kind != S_IFREG && kind != S_IFDIR && kind != S_IFBLK)
		return 0;
	key.inode = BPF_CORE_READ(inode, i_ino);
	key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	key.generation = BPF_CORE_READ(inode, i_generation);
	key.group = t->group;
	sum = bpf_map_lookup_elem(&files, &key);
	if (!sum) {
		scratch = bpf_map_lookup_elem(&file_scratch, &zero);
		/* Building the path is what takes time, so it is not built if there is no room. */
		if (!scratch || files_begun >= record_files || !file_first_seen(scratch, file))
			goto not_kept;
		/* If another CPU got there first, its row is used. */
		if (!bpf_map_update_elem(&files, &key, &scratch->first, BPF_NOEXIST))
			__sync_fetch_and_add(&files_begun, 1);
		sum = bpf_map_lookup_elem(&files, &key);
		if (!sum)
			goto not_kept;
	}
	if (use < FILE_USES)
		__sync_fetch_and_add(&sum->calls[use], 1);
	if (use == USED_READ)
		__sync_fetch_and_add(&sum->read_bytes, bytes);
	if (use == USED_WRITE)
		__sync_fetch_and_add(&sum->written_bytes, bytes);
	/* The time of a call on two files is counted once. */
	if (wall) {
		__sync_fetch_and_add(&sum->wall_ns, wall);
		__sync_fetch_and_add(&sum->blocked_ns, t->call_blocked_ns);
	}
	sum->size = BPF_CORE_READ(inode, i_size);
	return 1;
not_kept:
	__sync_fetch_and_add(&files_not_kept, 1);
	return 0;
}

static __always_inline __u32 argument_of(__u64 regs, __u32 which)
{
	switch (which) {
	case 1:
		return CALL_ARG1(regs);
	case 2:
		return CALL_ARG2(regs);
	case 3:
		return CALL_ARG3(regs);
	default:
		return CALL_ARG5(regs);
	}
}

__noinline int files_exit(struct thread *t, __u64 regs, __u16 call, long result, __u64 wall)
{
	struct call_on_files what = call_on_files(call);
	__u64 bytes = result > 0 ? result : 0;
	__u32 descriptor;

	/* Checked here too: kernels before 6.8 verify a global function even if nothing calls it (commit 2afae08c9dcb). */
	if (!record_files)
		return 0;
	refusable(REFUSE_FILES);
	if (!t || !what.argument || result == -9) /* EBADF */
		return 0;
	if (what.argument == RESULT) {
		if (result < 0)
			return 0;
		descriptor = result;
	} else {
		descriptor = argument_of(regs, what.argument);
	}
	/* An anonymous mapping. */
	if (what.use == USED_MAP && (int)descriptor < 0)
		return 0;
	if (file_used(t, descriptor, what.use, bytes, wall))
		wall = 0;
	if (what.second)
		file_used(t, argument_of(regs, what.second), what.second_use, bytes, wall);
	return 0;
}

#endif
