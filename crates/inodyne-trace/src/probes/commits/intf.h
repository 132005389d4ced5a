/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the probe of journals and its reader share. */
#ifndef INODYNE_COMMITS_INTF_H
#define INODYNE_COMMITS_INTF_H

#include "../../bpf/intf.h"

enum journal_kind {
	JOURNAL_JBD2 = 1,
	JOURNAL_XFS = 2,
	JOURNAL_BTRFS = 3,
};
EXPORT(enum, journal_kind);

struct journal_key {
	__u32 device;
	__u32 kind; /* enum journal_kind */
};

/* A journal, or a log. Not each kind of it fills all of this. */
struct journal_row {
	__u64 commits; /* transactions, or pieces of the log that were written */
	__u64 handles;
	__u64 blocks;  /* in the journal, with what describes them */
	__u64 locked_ns;
	__u64 flushing_ns;
	__u64 logging_ns;
	__u64 longest_ns;
	__u64 checkpoints;
	__u64 checkpointed; /* blocks that checkpoints wrote */
	__u64 forces; /* somebody asked for the log to be written */
	__u64 full;   /* somebody had to wait for space in it */
	/* Of the commit under way. */
	__u64 began;
	__u64 since;
};

/* One commit of a journal. */
struct commit_key {
	__u32 device;
	__u32 kind;   /* enum journal_kind */
	__u64 number; /* of this journal, from 0 on */
};

struct commit_span {
	__u64 began; /* 0 where only its end is seen */
	__u64 ended;
	__u64 blocks; /* in the journal; 0 where that is not told */
};

#endif
