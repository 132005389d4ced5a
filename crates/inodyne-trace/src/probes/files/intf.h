/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the files probe and its reader share. */
#ifndef INODYNE_FILES_INTF_H
#define INODYNE_FILES_INTF_H

#include "../../bpf/intf.h"

enum file_limits {
	FILE_PATH_LONGEST = 4096, /* PATH_MAX: include/uapi/linux/limits.h */
	FILE_NAME_LONGEST = 256,  /* NAME_MAX plus the slash */
	FILE_NAMES = 64,          /* names and mounts walked at most, from a file up to the root */
	FILE_PATH_KEPT = 256,     /* of a longer path, only its end is kept */
};
EXPORT(enum, file_limits);

/* What a call does with a file. */
enum file_use {
	USED_OTHERWISE,
	USED_OPEN,
	USED_READ,
	USED_WRITE,
	USED_LIST,
	USED_SYNC,
	USED_MAP,
	FILE_USES,
};
EXPORT(enum, file_use);

/* A file as used by programs of one command name. Inode numbers are reused: the generation tells one use from the next. */
struct file_key {
	__u64 inode;
	__u32 device;
	__u32 generation;
	__u32 group; /* of the command name */
	__u32 unused;
};

struct file_sum {
	__u64 calls[FILE_USES];
	__u64 read_bytes;
	__u64 written_bytes;
	__u64 wall_ns;
	__u64 blocked_ns;
	__u64 size; /* as of its last use */
	__u32 length; /* of what is kept in `path` */
	__u8 cut; /* 1: the path is longer, and only its end is kept */
	__u8 directory;
	__u16 unused;
	__u8 comm[COMM_LENGTH];
	__u8 path[FILE_PATH_KEPT];
};

/* A path under construction, built from its end backwards. */
struct file_scratch {
	__u64 dentry;
	__u64 mount;
	__u64 root_dentry; /* the process's root */
	__u64 root_mount;
	__u32 at; /* where the path begins in `whole` */
	__u32 complete;
	struct file_sum first;
	__u8 whole[FILE_PATH_LONGEST + FILE_PATH_KEPT];
};

#endif
