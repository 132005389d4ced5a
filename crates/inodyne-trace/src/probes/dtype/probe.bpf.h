/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Directory entries and their types: how many a process read, how many came as DT_UNKNOWN, from which directories,
 * and which later lookups were of a name that had come without a type.
 *
 * The entries are read from the process's own buffer when getdents64 returns. A name without a type is remembered
 * as hash(process, name); the first stat-family call of that process on a path that ends in this name removes it
 * again and is counted as forced. While nothing is remembered, all this costs a stat-family call one comparison.
 */
#ifndef INODYNE_DTYPE_PROBE_H
#define INODYNE_DTYPE_PROBE_H

#include "../../bpf/file.h"
#include "../../bpf/hash.h"
#include "../../bpf/maps.h"
#include "../../bpf/refuse.h"
#include "intf.h"

#define ENTRIES_AT_ONCE 16
#define PATH_LENGTH 4096
#define DT_UNKNOWN 0
#define MODE_IN_STATX 28

/* Set before loading. */
const volatile __u32 record_types = 0;

/* Names read without a type and not looked up yet. */
__u32 untyped_now;

/* Device -> directory entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct dtype_fs);
} dtype_filesystems SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct directory_key);
	__type(value, struct directory);
} dtype_directories SEC(".maps");

/* hash(process, name) -> how often it was read without a type and not looked up since. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, __u64);
	__type(value, __u32);
} untyped SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, struct forced_key);
	__type(value, struct forced_sum);
} forced SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} dtype_walk SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct directory);
} dtype_directory_scratch SEC(".maps");

static __always_inline struct walk *dtype_walk_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&dtype_walk, &zero);
}

static __always_inline bool dtype_is_lookup(__u16 call)
{
	return call == __NR_newfstatat || call == __NR_statx || call == __NR_lstat || call == __NR_stat;
}

/* Remembers the name at this offset in the walk's bytes. Global, so that it is verified once and not for each entry of a chunk. */
__noinline int remember_untyped(__u32 at)
{
	struct walk *walk = dtype_walk_here();
	__u32 one = 1, *count;
	__u64 hash;
	long length;

	if (!record_types || !walk || at >= CHUNK + DIRENT_HEAD)
		return 0;
	length = bpf_probe_read_kernel_str(walk->name, NAME_LENGTH, walk->bytes + at);
	if (length <= 1 || length > NAME_LENGTH)
		return 0;
	hash = name_hash(walk->tgid, walk->name, length - 1);
	count = bpf_map_lookup_elem(&untyped, &hash);
	if (count) {
		__sync_fetch_and_add(count, 1);
	} else if (bpf_map_update_elem(&untyped, &hash, &one, BPF_ANY)) {
		lose(LOST_DTYPE);
		return 0;
	}
	__sync_fetch_and_add(&untyped_now, 1);
	return 0;
}

/* Walks some directory entries. Stops (1) at the end of the chunk, also if that cuts an entry off. */
static long walk_entries(__u64 index, void *unused)
{
	struct walk *walk = dtype_walk_here();
	__u32 at, end, seen = 0;

	if (!walk)
		return 1;
	at = walk->at;
	end = walk->end;
	for (__u32 i = 0; i < ENTRIES_AT_ONCE; i++) {
		__u8 *entry = walk->bytes + at;
		__u32 head, length;

		if (at >= CHUNK || at + DIRENT_HEAD >= end)
			goto stop;
		/* d_reclen, d_type and the first character of the name, all at once. */
		head = *(__u32 *)(entry + 16);
		length = head & 0xffff;
		if (length <= DIRENT_HEAD || at + length > end)
			goto stop;
		at += length;
		if (head >> 24 == '.' && (!entry[20] || (entry[20] == '.' && !entry[21])))
			continue;
		seen++;
		if ((head >> 16 & 0xff) == DT_UNKNOWN) {
			walk->unknown++;
			remember_untyped(at - length + DIRENT_HEAD);
		}
	}
	walk->at = at;
	walk->entries += seen;
	return 0;
stop:
	walk->at = at;
	walk->entries += seen;
	return 1;
}

static long walk_chunk(__u64 index, void *unused)
{
	struct walk *walk = dtype_walk_here();
	__u32 length;

	if (!walk || walk->done >= walk->total)
		return 1;
	length = walk->total - walk->done;
	if (length > CHUNK)
		length = CHUNK;
	if (bpf_probe_read_user(walk->bytes, length, (const void *)walk->buffer + walk->done))
		return 1;
	walk->at = 0;
	walk->end = length;
	bpf_loop(CHUNK / 24, walk_entries, 0, 0);
	walk->done += walk->at;
	return !walk->at;
}

static __noinline int note_directory(struct file *file, struct walk *walk)
{
	struct directory_key key = {};
	struct directory *seen, *made;
	struct dentry *dentry, *parent;
	struct inode *inode;
	__u32 zero = 0;

	inode = BPF_CORE_READ(file, f_inode);
	key.inode = BPF_CORE_READ(inode, i_ino);
	key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	seen = bpf_map_lookup_elem(&dtype_directories, &key);
	if (seen) {
		__sync_fetch_and_add(&seen->entries, walk->entries);
		__sync_fetch_and_add(&seen->unknown, walk->unknown);
		return 0;
	}
	made = bpf_map_lookup_elem(&dtype_directory_scratch, &zero);
	if (!made)
		return 0;
	made->entries = walk->entries;
	made->unknown = walk->unknown;
	made->names = 0;
	made->cut = 1;
	dentry = BPF_CORE_READ(file, f_path.dentry);
	for (__u32 i = 0; i < PATH_NAMES; i++) {
		parent = BPF_CORE_READ(dentry, d_parent);
		if (parent == dentry) {
			made->cut = 0;
			break;
		}
		bpf_probe_read_kernel_str(made->name + i * PATH_NAME, PATH_NAME, BPF_CORE_READ(dentry, d_name.name));
		made->names = i + 1;
		dentry = parent;
	}
	/* The table keeps the first 4,096 directories; the totals by file system count them all. */
	bpf_map_update_elem(&dtype_directories, &key, made, BPF_NOEXIST);
	return 0;
}

static __noinline int note_filesystem(struct file *file, struct walk *walk)
{
	struct super_block *sb = BPF_CORE_READ(file, f_inode, i_sb);
	__u32 device = BPF_CORE_READ(sb, s_dev);
	struct dtype_fs *seen, first = {};

	seen = bpf_map_lookup_elem(&dtype_filesystems, &device);
	if (!seen) {
		bpf_probe_read_kernel_str(first.fs, sizeof(first.fs), BPF_CORE_READ(sb, s_type, name));
		/* If another CPU was faster, its row is used. */
		bpf_map_update_elem(&dtype_filesystems, &device, &first, BPF_NOEXIST);
		seen = bpf_map_lookup_elem(&dtype_filesystems, &device);
		if (!seen) {
			lose(LOST_DTYPE);
			return 0;
		}
	}
	__sync_fetch_and_add(&seen->reads, 1);
	__sync_fetch_and_add(&seen->entries, walk->entries);
	__sync_fetch_and_add(&seen->unknown, walk->unknown);
	return 0;
}

/* For a file system that leaves types out: records which one, and which directory. */
static __noinline int note_untyped(struct walk *walk, struct task_struct *task, __u64 regs)
{
	struct file *file = file_of(task, CALL_ARG1(regs));

	if (!file) {
		lose(LOST_DTYPE);
		return 0;
	}
	note_filesystem(file, walk);
	note_directory(file, walk);
	return 0;
}

/*
 * On return from getdents64: what the process got. A global function, like the others that are called at the end of a call: the
 * verifier checks these once, for any arguments, and not again on every path that leads to them.
 */
__noinline int dtype_read_exit(struct thread *t, __u64 regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct walk *walk = dtype_walk_here();

	/* Checked here, too: kernels before 6.8 verify a global function even if nothing calls it (commit 2afae08c9dcb). */
	if (!record_types)
		return 0;
	refusable(REFUSE_DTYPE);
	if (!t || result <= 0 || !t->number || !walk)
		return 0;
	walk->buffer = CALL_ARG2(regs);
	walk->total = result;
	walk->done = 0;
	walk->tgid = task->tgid;
	walk->entries = 0;
	walk->unknown = 0;
	/* 256 chunks are 4 MiB: more than any program asks for at once. */
	bpf_loop(256, walk_chunk, 0, 0);
	if (walk->done < walk->total)
		lose(LOST_DTYPE);
	walk->all_reads++;
	walk->all_entries += walk->entries;
	walk->all_unknown += walk->unknown;
	if (walk->unknown)
		note_untyped(walk, task, regs);
	return 0;
}

/* Walks back from the end of a path to its last slash. */
static long find_slash(__u64 index, void *unused)
{
	struct walk *walk = dtype_walk_here();
	__u32 before;

	if (!walk)
		return 1;
	before = walk->at - 1;
	if (before >= PATH_LENGTH || walk->bytes[before] == '/')
		return 1;
	walk->at = before;
	return 0;
}

/* On entry to a stat-family call: is the last component of its path a name that came without a type? */
__noinline int dtype_lookup_enter(struct thread *t, __u32 tgid, __u64 regs, __u16 call)
{
	struct walk *walk = dtype_walk_here();
	__u32 at, *count;
	const void *path;
	__u64 hash;
	long length;

	if (!record_types || !t || !walk)
		return 0;
	if (call == __NR_lstat || call == __NR_stat)
		path = (const void *)CALL_ARG1(regs);
	else
		path = (const void *)CALL_ARG2(regs);
	length = bpf_probe_read_user_str(walk->bytes, PATH_LENGTH, path);
	/* The length includes the terminating NUL: 1 is the empty path of a lookup by descriptor. */
	if (length <= 1 || length > PATH_LENGTH)
		return 0;
	walk->at = length - 1;
	bpf_loop(NAME_LENGTH, find_slash, 0, 0);
	at = walk->at;
	if (at >= PATH_LENGTH || at >= length)
		return 0;
	hash = name_hash(tgid, walk->bytes + at, length - 1 - at);
	count = bpf_map_lookup_elem(&untyped, &hash);
	if (!count)
		return 0;
	t->flags |= FLAG_FORCED;
	if (*count > 1)
		__sync_fetch_and_add(count, -1);
	else
		bpf_map_delete_elem(&untyped, &hash);
	__sync_fetch_and_add(&untyped_now, -1);
	return 0;
}

/* On its return: whether it found a directory, and what it cost. */
__noinline int dtype_lookup_exit(struct thread *t, __u64 regs, __u16 call, long result, __u64 wall)
{
	struct forced_key key = { .call = call };
	struct forced_sum *sum, first = {};
	const void *buffer;
	__u16 mode = 0;

	if (!record_types || !t)
		return 0;
	key.thread = t->number;
	t->flags &= ~FLAG_FORCED;
	if (result)
		return 0;
	if (call == __NR_statx)
		buffer = (const void *)CALL_ARG5(regs) + MODE_IN_STATX;
	else if (call == __NR_newfstatat)
		buffer = (const void *)CALL_ARG3(regs) + MODE_IN_STAT;
	else
		buffer = (const void *)CALL_ARG2(regs) + MODE_IN_STAT;
	if (bpf_probe_read_user(&mode, sizeof(mode), buffer))
		lose(LOST_DTYPE);
	key.directory = (mode & S_IFMT) == S_IFDIR;
	sum = bpf_map_lookup_elem(&forced, &key);
	if (!sum) {
		if (bpf_map_update_elem(&forced, &key, &first, BPF_NOEXIST)) {
			lose(LOST_DTYPE);
			return 0;
		}
		sum = bpf_map_lookup_elem(&forced, &key);
		if (!sum)
			return 0;
	}
	/* The key includes the thread: nothing else writes this row. */
	sum->calls++;
	sum->wall_ns += wall;
	sum->blocked_ns += t->call_blocked_ns;
	sum->ready_ns += t->call_ready_ns;
	return 0;
}

#endif
