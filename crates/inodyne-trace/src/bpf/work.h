/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Pieces of work: what a thread did on a CPU, by call, between two instants at which others depended on it. The walk over
 * the critical path comes to a thread, and leaves it, at such instants only; so it knows exactly what ran in between, and
 * nothing has to be sent for each call.
 */
#ifndef INODYNE_WORK_H
#define INODYNE_WORK_H

#include "maps.h"

/* The number of parts lies in the record and not in a register, so that the verifier takes each round for the same. */
static __always_inline void work_add(struct work_record *record, __u32 ordinal, __u64 ns)
{
	__u32 at = record->count;

	if (at >= WORK_PARTS)
		return;
	record->part[at].ordinal = ordinal;
	record->part[at].ns = ns;
	record->count = at + 1;
}

/* Sends what the account has grown by since the last time. */
static __noinline int work_send(struct thread *t, __u64 now, __u32 user)
{
	struct work_record *record;
	struct mark *mark;
	__u32 slot, count;

	if (!t || !record_timeline)
		return 0;
	slot = t->slot;
	mark = bpf_map_lookup_elem(&marks, &slot);
	record = bpf_map_lookup_elem(&work_scratch, &user);
	if (!mark || !record)
		return 0;
	record->kind = TIMELINE_WORK;
	record->thread = t->number;
	record->at = now;
	record->count = 0;
	if (t->user_ns != mark->user_ns) {
		work_add(record, ORDINALS, t->user_ns - mark->user_ns);
		mark->user_ns = t->user_ns;
	}
	for (__u32 word = 0; word < ORDINALS / 32; word++) {
		__u32 touched = t->touched[word];

		if (!touched)
			continue;
		t->touched[word] = 0;
		for (__u32 bit = 0; bit < 32; bit++) {
			__u32 ordinal = word * 32 + bit;

			if (!(touched & 1u << bit))
				continue;
			work_add(record, ordinal, t->kernel_ns[ordinal] - mark->kernel_ns[ordinal]);
			mark->kernel_ns[ordinal] = t->kernel_ns[ordinal];
		}
	}
	count = record->count;
	if (!count || count > WORK_PARTS)
		return 0;
	if (bpf_ringbuf_output(&timeline, record, sizeof(*record) - (WORK_PARTS - count) * sizeof(struct work_part),
			       BPF_RB_NO_WAKEUP))
		lose(LOST_WORK);
	return 0;
}

#endif
