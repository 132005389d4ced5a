/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The end of a life: its account goes to the user side, and its slot to the next thread.
 */
#ifndef INODYNE_LIFECYCLE_END_H
#define INODYNE_LIFECYCLE_END_H

#include "../../bpf/run.h"
#include "../../bpf/task.h"
#include "intf.h"

/* Ended threads and executed programs: never dropped unless its consumer is dead. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

/* Closes an account and frees its slot. */
static __noinline int thread_end(struct thread *t, __u32 slot, __u64 now)
{
	struct thread_record *record;

	clock_charge_running(t, now, call_slot_in_progress(t));
	t->ended = now;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (record) {
		record->kind = RECORD_THREAD;
		bpf_probe_read_kernel(&record->thread, sizeof(record->thread), t);
		bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	} else {
		lose(LOST_RECORDS);
	}
	if (t->flags & FLAG_HELPER)
		__sync_fetch_and_add(&shared.helpers_alive, -1);
	thread_free(t, slot);
	return 0;
}

#endif
