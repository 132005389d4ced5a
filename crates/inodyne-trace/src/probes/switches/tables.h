/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Waits summed by place, and the timeline: off-CPU intervals and pieces of work.
 *
 * A piece of work is what a thread did on a CPU, by call, between two instants at which others depended on it. The walk along
 * the critical path enters and leaves a thread only at such instants, so it knows exactly what ran in between, and nothing has
 * to be sent for each call.
 */
#ifndef INODYNE_SWITCHES_TABLES_H
#define INODYNE_SWITCHES_TABLES_H

#include "../../bpf/maps.h"
#include "../../bpf/ring.h"
#include "intf.h"

/* Only the thread itself writes its rows (when it is switched in), so no atomics are needed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct wait_key);
	__type(value, struct wait_sum);
} waits SEC(".maps");

/* Off-CPU intervals and pieces of work. */
RING(timeline);

/* The only element: until when the timeline has room; 0: no limit yet. Set by the reader, some time in advance. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} timeline_until SEC(".maps");

/* What has been sent of the account in the same slot. */
TABLE_OF_THREADS(last_sent, struct last_sent, 0);

/* Pieces of work under construction, one for each program that can be interrupted by another. */
enum work_user { WORK_OF_SWITCH, WORK_OF_WAKING, WORK_OF_FORK, WORK_OF_REQUEST, WORK_USERS };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WORK_USERS);
	__type(key, __u32);
	__type(value, struct work_record);
} work_scratch SEC(".maps");

static __always_inline void note_wait(struct thread *t, __u64 ns)
{
	struct wait_key key = {
		.thread = t->number,
		.call = t->call,
		.waker = t->waker,
		.began_before = t->joined,
		.stack = t->stack,
		.waker_stack = t->waker_stack,
	};
	struct wait_sum *sum = bpf_map_lookup_elem(&waits, &key);

	if (sum) {
		sum->ns += ns;
		sum->count++;
		if (ns > sum->max_ns)
			sum->max_ns = ns;
	} else {
		struct wait_sum first = { .ns = ns, .count = 1, .max_ns = ns };

		if (bpf_map_update_elem(&waits, &key, &first, BPF_NOEXIST))
			lose(LOST_WAITS);
	}
}

/* Whether the timeline has room for what begins then. That instant alone decides, so nothing is missing of what began before. */
static __always_inline bool timeline_has_room(__u64 at)
{
	__u32 zero = 0;
	__u64 *until = bpf_map_lookup_elem(&timeline_until, &zero);

	return !until || !*until || at <= *until;
}

static __always_inline void note_interval(struct thread *t, __u64 out, __u64 wake, __u64 in, bool blocked)
{
	struct interval_record *record;

	if (!record_timeline || !timeline_has_room(out))
		return;
	record = ring_reserve(timeline, sizeof(*record));
	if (!record) {
		lose(t->flags & FLAG_HELPER ? LOST_WORK : LOST_INTERVALS);
		return;
	}
	record->kind = TIMELINE_INTERVAL;
	record->thread = t->number;
	record->out = out;
	record->wake = wake;
	record->in = in;
	record->call = t->call;
	record->stack = blocked ? t->stack : 0;
	record->waker = blocked ? t->waker : WAKER_UNKNOWN;
	record->waker_tid = blocked ? t->waker_tid : 0;
	record->waker_number = blocked ? t->waker_number : 0;
	record->waker_stack = blocked ? t->waker_stack : 0;
	ring_submit(timeline, record);
}

/* The number of parts is kept in the record and not in a register, so the verifier sees the same state in each iteration. */
static __always_inline void work_add(struct work_record *record, __u32 call_slot, __u64 ns)
{
	__u32 at = record->count;

	if (at >= WORK_PARTS)
		return;
	record->part[at].call_slot = call_slot;
	record->part[at].ns = ns;
	record->count = at + 1;
}

/*
 * Adds what was charged to the calls in one word of `touched` since the last time. Not static, like work_send: the verifier checks each of
 * them once, and not again for every path that leads there.
 */
__noinline int work_add_calls(struct thread *t, struct last_sent *sent, struct work_record *record, __u32 word)
{
	__u32 touched;

	if (!t || !sent || !record || word >= CALL_SLOTS / 32)
		return 0;
	touched = t->touched[word];
	t->touched[word] = 0;
	for (__u32 bit = 0; bit < 32; bit++) {
		__u32 call_slot = word * 32 + bit;

		if (!(touched & 1u << bit))
			continue;
		work_add(record, call_slot, t->kernel_ns[call_slot] - sent->kernel_ns[call_slot]);
		sent->kernel_ns[call_slot] = t->kernel_ns[call_slot];
	}
	return 0;
}

/* Sends what was charged to the account since the last time. */
__noinline int work_send(struct thread *t, __u64 now, __u32 user)
{
	struct work_record *record;
	struct last_sent *sent;
	__u32 count;

	if (!t || !record_timeline || !timeline_has_room(now))
		return 0;
	sent = at_slot(&last_sent, t->slot);
	record = bpf_map_lookup_elem(&work_scratch, &user);
	if (!sent || !record)
		return 0;
	record->kind = TIMELINE_WORK;
	record->thread = t->number;
	record->at = now;
	record->count = 0;
	if (t->user_ns != sent->user_ns) {
		work_add(record, CALL_SLOTS, t->user_ns - sent->user_ns);
		sent->user_ns = t->user_ns;
	}
	for (__u32 word = 0; word < CALL_SLOTS / 32; word++)
		if (t->touched[word])
			work_add_calls(t, sent, record, word);
	count = record->count;
	if (!count || count > WORK_PARTS)
		return 0;
	if (!ring_send(timeline, record, sizeof(*record) - (WORK_PARTS - count) * sizeof(struct work_part)))
		lose(LOST_WORK);
	return 0;
}

#endif
