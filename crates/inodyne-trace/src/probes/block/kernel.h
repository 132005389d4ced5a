/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* The block layer's structures, with only the fields that this probe uses: see bpf/kernel.h. */
#ifndef INODYNE_BLOCK_KERNEL_H
#define INODYNE_BLOCK_KERNEL_H

#include "../../bpf/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct request_queue {
	struct gendisk *disk;
};

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size;
};

struct bio {
	struct block_device *bi_bdev;
	struct bvec_iter bi_iter;
	unsigned int bi_opf;
	void *bi_private;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int rq_flags;
	unsigned int __data_len;
	__u64 __sector;
	struct bio *bio;
	struct block_device *part;
	__u64 start_time_ns;
};

#pragma clang attribute pop

/* The values differ between kernels: CO-RE fills in the right ones. */
enum req_flag_bits {
	__REQ_SYNC,
	__REQ_META,
	__REQ_FUA,
	__REQ_PREFLUSH,
	__REQ_RAHEAD,
	__REQ_BACKGROUND,
	__REQ_SWAP,
};

/* Macros before Linux 6.11 (include/linux/blk-mq.h), then for some versions an anonymous enum, which is not found by this name. */
enum rqf_flags {
	__RQF_FLUSH_SEQ,
	__RQF_IO_STAT,
};

#define REQUEST_FLAG(name) (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_##name))

/* Set before loading: whether the kernel has this enum, named or anonymous. */
const volatile __u32 rqf_numbered = 0;

#define RQF_FLAG(name, unnamed, before)                                                                                \
	(bpf_core_enum_value_exists(enum rqf_flags, __RQF_##name) ? 1U << bpf_core_enum_value(enum rqf_flags, __RQF_##name) : \
	 rqf_numbered						  ? (unnamed) :                                         \
								    (before))
#define RQF_FLUSH_SEQ RQF_FLAG(FLUSH_SEQ, 1U << 1, 1U << 4)
#define RQF_IO_STAT RQF_FLAG(IO_STAT, 1U << 8, 1U << 13)

/* include/linux/blk_types.h */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DRV_IN 34 /* from here on, passthrough requests to a driver */

#define PF_WQ_WORKER 0x00000020

#endif
