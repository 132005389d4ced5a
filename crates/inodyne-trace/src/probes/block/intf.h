/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the block device probe and its reader share. */
#ifndef INODYNE_BLOCK_INTF_H
#define INODYNE_BLOCK_INTF_H

#include "../../bpf/intf.h"

enum block_limits {
	BLOCK_SIZES = 16, /* powers of two from 512 bytes up */
	BLOCK_TIMES = 40, /* powers of two of nanoseconds */
	BLOCK_DISKS = 256,
};
EXPORT(enum, block_limits);

/* A request's properties besides its operation: the kernel's REQ_* flags, whose bits differ between versions. */
enum block_flag {
	BLOCK_SYNC = 1,
	BLOCK_META = 2,
	BLOCK_READ_AHEAD = 4,
	BLOCK_FUA = 8,
	BLOCK_PREFLUSH = 16,
	BLOCK_BACKGROUND = 32,
	BLOCK_SWAP = 64,
};
EXPORT(enum, block_flag);

/* Whose thread submitted the I/O. */
enum block_asker {
	BLOCK_UNKNOWN = 0,
	BLOCK_OF_COMMAND = 1,
	BLOCK_OF_KERNEL = 2,
	BLOCK_OF_OTHERS = 3,
};
EXPORT(enum, block_asker);

/* A submitted bio: by whom, and from where. */
struct block_bio {
	__u64 at;
	__u64 stack;
	__u64 sector; /* its first one */
	__u64 cgroup; /* of the submitter, if that is another program's thread; else 0 */
	__u32 bytes;
	__u8 asker; /* enum block_asker */
	__u8 is_new; /* 1: block_queue_again has not seen it yet */
	__u8 unused[2];
	__u8 comm[COMM_LENGTH];
};

/* What requests that are counted together have in common. */
struct block_key {
	__u64 stack;  /* where it was submitted; 0: unknown, or submitted before the command began */
	__u64 cgroup; /* of the submitter, if that is another program's thread; else 0 */
	__u32 device; /* the partition, if it is for one */
	__u32 disk;
	__u16 flags;  /* enum block_flag */
	__u8 op;      /* REQ_OP_*: include/linux/blk_types.h */
	__u8 after;   /* the command had ended */
	__u8 asker;   /* enum block_asker */
	__u8 unused[3];
	__u8 comm[COMM_LENGTH]; /* of the submitter: its name and not its pid, as there may be thousands of processes */
};

/* A request in flight. */
struct block_request {
	struct block_key key;
	__u64 queued; /* 0: unknown */
	__u64 issued; /* 0: not seen */
	__u64 made;   /* the kernel's start_time_ns: a different request at the same address has a different one */
	__u32 bytes;
	__u8 sequential;
	__u8 arrived; /* the device is done with it, but the kernel may not be */
	__u16 place;  /* index plus one of the disk's entry; 0: there is none */
};

/* How many concurrent sequential streams (threads) are told apart among a disk's reads, and among its writes. */
#define BLOCK_STREAMS 4

/* Requests that are counted together, by block_key. */
struct block_row {
	__u64 requests;
	__u64 bytes;
	__u64 sequential;
	__u64 timed;     /* those whose times are known */
	__u64 queue_ns;  /* from submission until issued to the device */
	__u64 device_ns; /* from then until the device was done */
	__u32 sizes[BLOCK_SIZES];
	__u32 queue_times[BLOCK_TIMES];
	__u32 device_times[BLOCK_TIMES];
};

/* A disk. */
struct block_disk {
	__u64 merged; /* bios and requests that were merged into another request */
	__u64 busy_ns;
	__u64 since;      /* when in_flight last rose from 0 */
	/* Where the last read of each stream ended, the most recent first; then the same for writes. */
	__u64 next_sector[2 * BLOCK_STREAMS];
	/* The totals of its rows, which are read while the command runs. */
	__u64 requests;
	__u64 read_bytes;
	__u64 written_bytes;
	__u64 device_ns;
	__u32 in_flight;
	__u32 number; /* the disk's; 0: this entry is unused */
};

#endif
