/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Requests that servers answer: from when one has been read from a descriptor until something is written to it. Only if enabled
 * (record_requests); otherwise the verifier removes all of it from the programs as dead code.
 *
 * A request begins with the first read since the last answer, on the same descriptor of the same process, whichever thread does it; further
 * reads belong to it. It ends with the first write. What is written after that does not answer anything. On a connection that the process
 * itself has made, say to a database, it is the one that asks, and what it reads are answers: no request begins there.
 */
#ifndef INODYNE_REQUESTS_PROBE_H
#define INODYNE_REQUESTS_PROBE_H

#include "../../bpf/maps.h"
#include "../../bpf/refuse.h"
#include "../switches/tables.h"
#include "connection.h"
#include "intf.h"

/* One of enum request_marks, and for REQUESTS_OF_CALLS the two calls. Set before loading. */
const volatile __u32 record_requests = REQUESTS_UNASKED;
const volatile __u32 request_read = 0;
const volatile __u32 request_write = 0;

/* Requests for which there was no room. */
__u64 requests_not_kept;

/* When each request had been read. One entry unless enabled. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct request_key);
	__type(value, __u64);
} requests_read SEC(".maps");

RING(requests_answered);

static __always_inline bool receives(__u16 call)
{
	return call == __NR_read || call == __NR_readv || call == __NR_recvfrom || call == __NR_recvmsg;
}

static __always_inline bool reads_request(__u16 call)
{
	if (record_requests == REQUESTS_OF_CALLS)
		return call == request_read;
	return receives(call);
}

/* Calls whose descriptor is their result. */
static __always_inline bool returns_descriptor(__u16 call)
{
	return call == __NR_accept || call == __NR_accept4 || call == __NR_openat;
}

static __always_inline bool answers_request(__u16 call)
{
	if (record_requests == REQUESTS_OF_CALLS)
		return call == request_write;
	return call == __NR_write || call == __NR_writev || call == __NR_sendto || call == __NR_sendmsg || call == __NR_sendfile;
}

/* A call has ended. If it marks a request, what its thread has done until now is a piece of work of its own. */
__noinline int requests_exit(struct thread *t, __u64 regs, __u16 call, long result, __u64 now)
{
	struct request_record answered = {};
	struct request_key key = {};
	__u64 *read;

	/* Asked here too: kernels before 6.8 verify a global function also where none calls it (commit 2afae08c9dcb). */
	if (!record_requests)
		return 0;
	refusable(REFUSE_REQUESTS);
	if (!t || result < 0)
		return 0;
	key.process = t->pid;
	key.descriptor = returns_descriptor(call) ? result : CALL_ARG1(regs);
	if (answers_request(call)) {
		/* With REQUESTS_OF_CALLS any success counts; otherwise some of an answer must have been written. */
		if (!result && record_requests != REQUESTS_OF_CALLS)
			return 0;
		read = bpf_map_lookup_elem(&requests_read, &key);
		if (!read)
			return 0;
		answered.from = *read;
		answered.to = now;
		answered.thread = t->number;
		bpf_map_delete_elem(&requests_read, &key);
		if (!ring_send(requests_answered, &answered, sizeof(answered)))
			__sync_fetch_and_add(&requests_not_kept, 1);
	} else if (call == __NR_close || (!result && receives(call))) {
		/* There is nobody left to answer. */
		bpf_map_delete_elem(&requests_read, &key);
		return 0;
	} else if (reads_request(call)) {
		if (bpf_map_lookup_elem(&requests_read, &key))
			return 0;
		if (record_requests == REQUESTS_OF_SOCKETS && !may_be_asked(key.descriptor))
			return 0;
		if (bpf_map_update_elem(&requests_read, &key, &now, BPF_NOEXIST))
			__sync_fetch_and_add(&requests_not_kept, 1);
	} else {
		return 0;
	}
	work_send(t, now, WORK_OF_REQUEST);
	return 0;
}

#endif
