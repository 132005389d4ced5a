/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the page cache probe and its reader share. */
#ifndef INODYNE_PAGE_CACHE_INTF_H
#define INODYNE_PAGE_CACHE_INTF_H

#include "../../bpf/intf.h"

enum page_cache_limits {
	PAGES_IN_CHUNK = 64, /* as many as a word has bits */
	PAGE_FILE_NAME = 40,
};
EXPORT(enum, page_cache_limits);

/* What pages hold. */
enum page_contents {
	PAGES_OF_FILE = 0,
	PAGES_OF_METADATA = 1, /* directories, block maps, inodes: whatever of these the file system keeps in the page cache */
};
EXPORT(enum, page_contents);

/* Who brought pages into memory, during which call, from which file system. */
struct page_cache_key {
	__u32 device;
	__u16 call; /* CALL_NONE: in user mode, so by a page fault */
	__u8 contents; /* enum page_contents */
	__u8 unused;
	__u8 comm[COMM_LENGTH];
};

struct page_cache_row {
	__u64 brought;
	__u64 again; /* of these, pages that had been brought in before while the command ran */
};

/* Adjacent pages of a file. */
struct page_chunk_key {
	__u64 inode;
	__u64 chunk;
	__u32 device;
	__u32 generation;
};

/* A bit for each page. */
struct page_chunk {
	__u64 brought;
	__u64 asked;  /* asked for by a call or a page fault, before or after it was brought in */
	__u64 beside; /* mapped along with the page of a fault: whether the program accessed it cannot be seen */
	__u8 name[PAGE_FILE_NAME]; /* of the file, without its directory */
};

/* What is counted while pages of a file are being marked. */
struct page_progress {
	__u32 in_vain; /* consecutive chunks that are not known */
	__u32 known;   /* MARK_BROUGHT: pages that had been brought in before; otherwise: known chunks */
};

/* Per-CPU sums. */
struct page_totals {
	__u64 read;        /* pages of files that calls asked for, counted each time */
	__u64 faulted;     /* page faults that were not served by mapping pages already in memory */
	__u64 mapped;      /* page faults that were, and mapped some pages that the command had brought in */
	__u64 evicted;     /* pages of anybody's files that were evicted for lack of memory */
	__u64 evicted_own; /* of these, pages that the command had brought in */
};

#endif
