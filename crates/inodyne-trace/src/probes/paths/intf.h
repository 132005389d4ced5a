/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the paths probe and its reader share. */
#ifndef INODYNE_PATHS_INTF_H
#define INODYNE_PATHS_INTF_H

#include "../../bpf/intf.h"

enum path_limits {
	PATH_LONGEST = 4096, /* PATH_MAX: include/uapi/linux/limits.h */
	PATH_KEPT = 256,     /* of a longer path, only its end is kept */
};

/* A path in one kind of call. */
struct path_count {
	__u64 calls;
	__u64 not_found;
	__u64 wall_ns;
	__u32 length; /* of what is kept in `path` */
	__u16 call;
	__u8 cut; /* 1: the path is longer, and only its end is kept */
	__u8 unused;
	__u8 path[PATH_KEPT];
};

/* A path under construction. */
struct path_scratch {
	__u8 whole[PATH_LONGEST + PATH_KEPT];
	struct path_count first;
};

#endif
