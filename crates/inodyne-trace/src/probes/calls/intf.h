/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the syscall probe and its reader share. */
#ifndef INODYNE_CALLS_INTF_H
#define INODYNE_CALLS_INTF_H

#include "../../bpf/intf.h"

enum call_limits {
	/* errno 1 to 133, then ERESTARTSYS to ERESTART_RESTARTBLOCK (512 to 516), then all others. */
	ERRNO_PLAIN = 134,
	ERRNO_RESTART_FIRST = 512,
	ERRNO_RESTARTS = 5,
	ERRNO_OTHERS = ERRNO_PLAIN + ERRNO_RESTARTS,
	ERRNO_SLOTS = ERRNO_OTHERS + 1,

	HISTOGRAM_BUCKETS = 264,

	CALL_ROWS = 65534, /* as many as call_ref tells apart */
};
EXPORT(enum, call_limits);

/* Calls of one kind by one command, on one CPU: there is only one writer, so no atomics. */
struct call_stats {
	__u64 calls;
	__u64 errors;
	__u64 wall_ns;
	__u64 blocked_ns;
	__u64 ready_ns;
	__u64 min_ns;
	__u64 max_ns;
	__u64 failed_ns; /* the part of wall_ns in calls that returned an error */
	__u64 bytes;     /* sum of the return values, for calls that return a number of bytes (names.rs says which) */
	__u64 histogram[HISTOGRAM_BUCKETS];
	__u32 errnos[ERRNO_SLOTS];
};

/* What a (command, call) pair maps to: (row + 1) << 16 | (call slot + 1); 0 if the pair was never seen. */
typedef __u32 call_ref;

/* How much of the call tables has been handed out so far. */
struct calls_used {
	__u32 groups;
	__u32 rows;
	__u32 call_slots;
};

#endif
