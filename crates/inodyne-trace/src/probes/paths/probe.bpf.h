/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Paths that are looked up, as the process gave them: how often, how often not found, how long. Only if enabled
 * (record_paths); otherwise the verifier removes all of it from the programs as dead code.
 *
 * The path is read again when the call returns. A path that is no longer in memory by then (the process image was replaced,
 * the page reclaimed) is counted as not kept, like one that finds the table full.
 */
#ifndef INODYNE_PATHS_PROBE_H
#define INODYNE_PATHS_PROBE_H

#include "../../bpf/file.h"
#include "../../bpf/hash.h"
#include "../../bpf/maps.h"
#include "../../bpf/refuse.h"
#include "intf.h"

const volatile __u32 record_paths = 0;

/* Look-ups whose path found no room, or was gone. */
__u64 paths_not_kept;

/* hash(call, path) -> how often. One entry unless enabled. Preallocated: a program that looks up a hundred thousand new
 * paths a second drains the kernel's BPF allocator faster than it is refilled. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct path_count);
} paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct path_scratch);
} path_scratch SEC(".maps");

/* Which argument is the path, in calls that look one up: 1 or 2; 0 for all other calls. */
static __always_inline __u32 path_argument(__u16 call)
{
	switch (call) {
	case __NR_stat:
	case __NR_lstat:
	case __NR_open:
	case __NR_access:
	case __NR_readlink:
		return 1;
	case __NR_newfstatat:
	case __NR_statx:
	case __NR_openat:
	case __NR_openat2:
	case __NR_faccessat:
	case __NR_faccessat2:
	case __NR_readlinkat:
		return 2;
	default:
		return 0;
	}
}

/* The directory that a path starts from, since the same name in two directories is two paths; 0 for the root. */
static __noinline __u64 path_begins_in(__u32 argument, __u64 regs, __u8 first)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	int directory = argument == 2 ? (int)CALL_ARG1(regs) : -1;
	struct inode *inode;

	if (first == '/')
		return 0;
	if (directory < 0) /* AT_FDCWD */
		inode = BPF_CORE_READ(task, fs, pwd.dentry, d_inode);
	else
		inode = BPF_CORE_READ(file_of(task, directory), f_inode);
	return BPF_CORE_READ(inode, i_ino) ^ (__u64)BPF_CORE_READ(inode, i_sb, s_dev) << 40;
}

__noinline int paths_exit(__u16 call, __u64 regs, long result, __u64 wall)
{
	__u32 argument = path_argument(call), zero = 0, start, kept;
	struct path_scratch *scratch;
	struct path_count *count;
	const void *path;
	__u64 hash;
	long length;

	/* Checked here too: kernels before 6.8 verify a global function even if nothing calls it (commit 2afae08c9dcb). */
	if (!record_paths)
		return 0;
	refusable(REFUSE_PATHS);
	if (!argument)
		return 0;
	scratch = bpf_map_lookup_elem(&path_scratch, &zero);
	if (!scratch)
		return 0;
	if (argument == 1)
		path = (const void *)CALL_ARG1(regs);
	else
		path = (const void *)CALL_ARG2(regs);
	/* The length includes the terminating NUL. */
	length = bpf_probe_read_user_str(scratch->whole, PATH_LONGEST, path);
	if (length == 1)
		return 0; /* a look-up by descriptor */
	if (length < 1 || length > PATH_LONGEST)
		goto not_kept;
	start = length > PATH_KEPT ? length - PATH_KEPT : 0;
	kept = length - start - 1;
	if (start >= PATH_LONGEST || kept >= PATH_KEPT)
		goto not_kept;
	bpf_probe_read_kernel(scratch->first.path, PATH_KEPT, scratch->whole + start);
	hash = path_begins_in(argument, regs, scratch->whole[0]) * 0x9e3779b97f4a7c15ULL;
	hash = name_hash(hash ^ call, scratch->first.path, kept);
	count = bpf_map_lookup_elem(&paths, &hash);
	if (!count) {
		scratch->first.calls = 0;
		scratch->first.not_found = 0;
		scratch->first.wall_ns = 0;
		scratch->first.call = call;
		scratch->first.length = kept;
		scratch->first.cut = start > 0;
		/* If another CPU got there first, its row is used. */
		bpf_map_update_elem(&paths, &hash, &scratch->first, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&paths, &hash);
		if (!count)
			goto not_kept;
	}
	__sync_fetch_and_add(&count->calls, 1);
	__sync_fetch_and_add(&count->wall_ns, wall);
	if (result == -2 || result == -20) /* ENOENT, ENOTDIR */
		__sync_fetch_and_add(&count->not_found, 1);
	return 0;
not_kept:
	__sync_fetch_and_add(&paths_not_kept, 1);
	return 0;
}

#endif
