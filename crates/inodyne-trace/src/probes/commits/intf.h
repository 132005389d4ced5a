/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the journal probe and its reader share. */
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

/* A journal or log. Not every kind fills in all of this. */
struct journal_row {
	__u64 commits; /* transactions, or pieces of the log written */
	__u64 handles;
	__u64 blocks;  /* in the journal, including descriptor blocks */
	__u64 locked_ns;
	__u64 flushing_ns;
	__u64 logging_ns;
	__u64 longest_ns;
	__u64 checkpoints;
	__u64 checkpointed; /* blocks that checkpoints wrote */
	__u64 forces; /* requests for the log to be written */
	__u64 full;   /* waits for space in it */
	/* Of the commit in progress. */
	__u64 began;
	__u64 since;
};

/* One commit of a journal. */
struct commit_key {
	__u32 device;
	__u32 kind;   /* enum journal_kind */
	__u64 number; /* within this journal, from 0 */
};

struct commit_span {
	__u64 began; /* 0 if only its end is seen */
	__u64 ended;
	__u64 blocks; /* in the journal; 0 if not reported */
};

#endif
