/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the switches probe and its reader share. */
#ifndef INODYNE_SWITCHES_INTF_H
#define INODYNE_SWITCHES_INTF_H

#include "../../bpf/intf.h"

struct wait_key {
	__u32 thread;
	__u16 call;
	__u8 waker;
	__u8 began_before; /* 1: the wait was under way when the thread was joined */
	__u64 stack;
	__u64 waker_stack;
};

struct wait_sum {
	__u64 ns;
	__u64 count;
	__u64 max_ns;
};

/* The timeline: one record each time a thread comes back to a CPU, one for each piece of work. The first word says which. */
enum timeline_kind {
	TIMELINE_INTERVAL = 1,
	TIMELINE_WORK = 2,
};
EXPORT(enum, timeline_kind);

struct interval_record {
	__u32 kind;
	__u32 thread;
	__u32 waker_tid;
	__u32 waker_number;
	__u64 out;
	__u64 wake; /* = out if the thread was preempted */
	__u64 in;
	__u64 stack; /* 0 if the thread was preempted */
	__u64 waker_stack;
	__u16 call;
	__u8 waker;
	__u8 unused[5];
};
EXPORT(struct, interval_record);

/* A piece of work: what a thread did on a CPU since the last one. Sent with as many parts as there are. */
enum work_limits { WORK_PARTS = CALL_SLOTS + 1 };
struct work_part {
	__u32 call_slot; /* CALL_SLOTS: outside of calls */
	__u32 unused;
	__u64 ns;
};
struct work_record {
	__u32 kind;
	__u32 thread;
	__u64 at;
	__u32 count;
	__u32 unused;
	struct work_part part[WORK_PARTS];
};

#endif
