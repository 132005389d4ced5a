/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the probe of block devices and its reader share. */
#ifndef INODYNE_BLOCK_INTF_H
#define INODYNE_BLOCK_INTF_H

#include "../../bpf/intf.h"

enum block_limits {
	BLOCK_SIZES = 16, /* powers of two from 512 bytes on */
	BLOCK_TIMES = 40, /* powers of two of nanoseconds */
	BLOCK_DISKS = 256,
};
EXPORT(enum, block_limits);

/* What a request is, besides its operation: the kernel's REQ_* flags, whose bits differ between versions. */
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

/* Whose thread asked. */
enum block_asker {
	BLOCK_UNKNOWN = 0,
	BLOCK_OF_COMMAND = 1,
	BLOCK_OF_KERNEL = 2,
	BLOCK_OF_OTHERS = 3,
};
EXPORT(enum, block_asker);

/* A piece of I/O that was asked for: by whom, and where. */
struct block_bio {
	__u64 at;
	__u64 stack;
	__u64 sector; /* where it begins */
	__u64 cgroup; /* of another program's thread; else 0 */
	__u32 bytes;
	__u8 asker; /* enum block_asker */
	__u8 is_new; /* 1: block_queue_again has not come to it */
	__u8 unused[2];
	__u8 comm[COMM_LENGTH];
};

/* What requests have in common that are counted together. */
struct block_key {
	__u64 stack;  /* where it was asked for; 0: not known, or before the command began */
	__u64 cgroup; /* of another program's thread that asked; else 0 */
	__u32 device; /* a partition where it is of one */
	__u32 disk;
	__u16 flags;  /* enum block_flag */
	__u8 op;      /* REQ_OP_*: include/linux/blk_types.h */
	__u8 after;   /* the command had ended */
	__u8 asker;   /* enum block_asker */
	__u8 unused[3];
	__u8 comm[COMM_LENGTH]; /* of who asked: the name and not the process, of which there may be thousands */
};

/* A request on its way. */
struct block_request {
	struct block_key key;
	__u64 queued; /* 0: not known */
	__u64 issued; /* 0: not seen */
	__u64 made;   /* the kernel's time of when it was made: another request at the same address has another */
	__u32 bytes;
	__u8 sequential;
	__u8 arrived; /* the device is done with it, the kernel may not be */
	__u16 unused;
};

/* Threads that read or write in order at the same time, as far as a disk's requests are told apart by that. */
#define BLOCK_STREAMS 4

/* Requests that are counted together. */
struct block_row {
	__u64 requests;
	__u64 bytes;
	__u64 sequential;
	__u64 timed;     /* of which the times are known */
	__u64 queue_ns;  /* from when it was asked for until it went to the device */
	__u64 device_ns; /* from there until the device was done */
	__u32 sizes[BLOCK_SIZES];
	__u32 queue_times[BLOCK_TIMES];
	__u32 device_times[BLOCK_TIMES];
};

/* A disk. */
struct block_disk {
	__u64 merged; /* pieces of I/O, and requests, that went into another request */
	__u64 busy_ns;
	__u64 since;      /* there is a request in flight */
	/* Where the last read of each of so many streams ended, the latest first; then the same of writes. */
	__u64 next_sector[2 * BLOCK_STREAMS];
	/* What its rows sum to, to be read while it goes on. */
	__u64 requests;
	__u64 read_bytes;
	__u64 written_bytes;
	__u64 device_ns;
	__u32 in_flight;
	__u32 number; /* the disk's; 0: there is none here */
};

#endif
