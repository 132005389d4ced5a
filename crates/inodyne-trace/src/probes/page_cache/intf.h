/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the probe of the page cache and its reader share. */
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
	PAGES_OF_METADATA = 1, /* directories, maps of blocks, inodes: of whatever the file system keeps in the page cache */
};
EXPORT(enum, page_contents);

/* Who brought pages into memory, during which call, of which file system. */
struct page_cache_key {
	__u32 device;
	__u16 call; /* CALL_NONE: in user mode, so by a page fault */
	__u8 contents; /* enum page_contents */
	__u8 unused;
	__u8 comm[COMM_LENGTH];
};

struct page_cache_row {
	__u64 brought;
	__u64 again; /* of these: had been brought before, while the command ran */
};

/* Pages of a file that lie side by side. */
struct page_chunk_key {
	__u64 inode;
	__u64 chunk;
	__u32 device;
	__u32 generation;
};

/* A bit for each page. */
struct page_chunk {
	__u64 brought;
	__u64 asked;  /* for, by a call or by a page fault, before or after it was brought */
	__u64 beside; /* mapped beside one that was faulted for: whether the program looked at it, nobody sees */
	__u8 name[PAGE_FILE_NAME]; /* of the file, without its directory */
};

/* What is counted while pages of a file are marked. */
struct page_progress {
	__u32 in_vain; /* chunks in a row of which none is known */
	__u32 known;   /* of what is brought: pages that were before; otherwise chunks that are known */
};

/* Sums that are kept for each CPU. */
struct page_totals {
	__u64 read;        /* pages of files that calls asked for, each time */
	__u64 faulted;     /* page faults that were not served by mapping what lies in memory */
	__u64 mapped;      /* page faults that were, and mapped some that the command had brought */
	__u64 evicted;     /* pages of anybody's files that were taken from the cache for want of memory */
	__u64 evicted_own; /* of these: the command had brought them */
};

#endif
