/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the directory entry probe and its reader share. */
#ifndef INODYNE_DTYPE_INTF_H
#define INODYNE_DTYPE_INTF_H

#include "../../bpf/intf.h"

enum dtype_limits {
	CHUNK = 16384,    /* bytes of a buffer that are read at once */
	ENTRY_NAME = 256, /* the longest possible name, with its terminating NUL */
	DIRENT_HEAD = 19, /* d_ino, d_off, d_reclen, d_type: include/linux/dirent.h */
	PATH_NAMES = 16,  /* components kept of a directory's path */
	PATH_NAME = 64,
};
EXPORT(enum, dtype_limits);

/* Directory entries: work in progress, and what this CPU has seen so far. Kept in a map and not
 * on the stack, so that all iterations of a loop look the same to the verifier, which knows nothing of values in maps. */
struct walk {
	__u64 all_reads;
	__u64 all_entries;
	__u64 all_unknown;
	__u64 buffer; /* address in the process */
	__u32 total;        /* bytes in it */
	__u32 done;
	__u32 at;           /* in `bytes` */
	__u32 end;
	__u32 tgid;
	__u32 entries;
	__u32 unknown;
	__u32 unused;
	__u8 name[ENTRY_NAME];
	__u8 bytes[CHUNK + ENTRY_NAME + DIRENT_HEAD + 5]; /* the last entry may begin anywhere below CHUNK */
};

/* Reads that returned entries without a type, by file system. */
struct dtype_fs {
	__u64 reads;
	__u64 entries;
	__u64 unknown;
	__u8 fs[COMM_LENGTH];
};

struct directory_key {
	__u64 inode;
	__u32 device;
	__u32 unused;
};

struct directory {
	__u64 entries;
	__u64 unknown;
	__u32 names; /* in name[], from the directory up to the root of its file system */
	__u32 cut;   /* the path is longer */
	__u8 name[PATH_NAMES * PATH_NAME];
};

struct forced_key {
	__u32 thread;
	__u16 call;
	__u8 directory;
	__u8 unused;
};

struct forced_sum {
	__u64 calls;
	__u64 wall_ns;
	__u64 blocked_ns;
	__u64 ready_ns;
};

#endif
