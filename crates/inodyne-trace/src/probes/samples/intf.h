/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the samples probe and its reader share. */
#ifndef INODYNE_SAMPLES_INTF_H
#define INODYNE_SAMPLES_INTF_H

#include "../../bpf/intf.h"

enum sample_limits {
	USER_STACKS = 16384,
	FRAME_IN_FILE = 1, /* enum bpf_stack_build_id_status: the frame lies in a file with a build id */
};
EXPORT(enum, sample_limits);

struct sample_key {
	__u32 thread;
	__u16 call;
	__u8 user_mode;
	__u8 blocked; /* 1: off-CPU time, which has only a user stack */
	__u64 stack;
	__u64 user_stack;
};

/* A frame of a user stack: the build id of its file and the offset in it, which can be resolved to a name even when the process
 * is gone; if these were not available, the address. The kernel's struct bpf_stack_build_id. */
struct user_frame {
	__s32 status;
	__u8 build_id[20];
	__u64 place;
};

struct user_frames {
	__u32 depth;
	__u32 pid; /* the process whose addresses these are, as the tracer sees it; 0 if all frames are in files */
	struct user_frame frame[STACK_DEPTH];
};

#endif
