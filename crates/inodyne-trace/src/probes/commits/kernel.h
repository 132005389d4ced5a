/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* The structures of journals, with only the fields that this probe uses: see bpf/kernel.h. */
#ifndef INODYNE_COMMITS_KERNEL_H
#define INODYNE_COMMITS_KERNEL_H

#include "../../bpf/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* fs/jbd2 */
struct journal_s {
	struct block_device *j_fs_dev;
};

struct transaction_run_stats_s {
	__u32 rs_handle_count;
	__u32 rs_blocks_logged;
};

struct transaction_chp_stats_s {
	__u32 cs_written;
};

/* fs/xfs */
struct xfs_mount {
	struct super_block *m_super;
};

struct xlog {
	struct xfs_mount *l_mp;
};

struct xlog_in_core {
	struct xlog *ic_log;
};

/* fs/btrfs */
struct btrfs_fs_info {
	struct super_block *sb;
};

#pragma clang attribute pop

#endif
