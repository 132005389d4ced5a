/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the dirty page probe and its reader share. */
#ifndef INODYNE_DIRTY_INTF_H
#define INODYNE_DIRTY_INTF_H

#include "../../bpf/intf.h"

/* Who dirties pages of which file system. */
struct dirty_key {
	__u64 superblock; /* its address */
	__u64 cgroup; /* of another program's thread; else 0 */
	__u8 asker; /* enum block_asker */
	__u8 unused[7];
	__u8 comm[COMM_LENGTH];
};

struct dirty_sum {
	__u64 bytes;
	__u32 disk;
	__u32 unused;
};

#endif
