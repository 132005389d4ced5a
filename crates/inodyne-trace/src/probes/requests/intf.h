/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the requests probe and its reader share. */
#ifndef INODYNE_REQUESTS_INTF_H
#define INODYNE_REQUESTS_INTF_H

#include "../../bpf/intf.h"

/* What marks a request. */
enum request_marks {
	REQUESTS_UNASKED,
	REQUESTS_OF_SOCKETS, /* any call that reads from a socket, and any that writes to it */
	REQUESTS_OF_CALLS,   /* two given calls */
};
EXPORT(enum, request_marks);

enum request_limits { REQUESTS_UNDER_WAY = 65536 };
EXPORT(enum, request_limits);

/* Where a request was read from. */
struct request_key {
	__u32 process;
	__u32 descriptor;
};

/* A request that has been answered. */
struct request_record {
	__u64 from; /* when it had been read */
	__u64 to;   /* when the first part of its answer had been written */
	__u32 thread; /* that wrote the answer */
	__u32 unused;
};
EXPORT(struct, request_record);

#endif
