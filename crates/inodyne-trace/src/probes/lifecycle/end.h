/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The end of a thread: its account is sent to the user side, and its slot is freed for the next thread.
 */
#ifndef INODYNE_LIFECYCLE_END_H
#define INODYNE_LIFECYCLE_END_H

#include "../../bpf/ring.h"
#include "../../bpf/run.h"
#include "../../bpf/task.h"
#include "intf.h"

/* Ended threads and executed programs: never dropped unless its consumer is dead. */
RING(records);

/* An account being sent. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread_record);
} ended_scratch SEC(".maps");

/* Sends an account, trimmed to the call slots in use by any thread: thousands of threads may end at once. */
static __always_inline bool send_account(const struct thread *t)
{
	__u32 zero = 0, calls = calls_used.call_slots, bytes;
	struct thread_record *record = bpf_map_lookup_elem(&ended_scratch, &zero);

	if (!record)
		return false;
	if (calls >= CALL_SLOT_OTHERS)
		calls = CALL_SLOTS;
	bytes = offsetof(struct thread, kernel_ns) + calls * sizeof(t->kernel_ns[0]);
	record->kind = RECORD_THREAD;
	return !bpf_probe_read_kernel(&record->thread, bytes, t) &&
	       ring_send(records, record, offsetof(struct thread_record, thread) + bytes);
}

/* Closes an account and frees its slot. */
static __noinline int thread_end(struct thread *t, __u32 slot, __u64 now)
{
	clock_charge_running(t, now, call_slot_in_progress(t));
	t->ended = now;
	if (!send_account(t))
		lose(LOST_RECORDS);
	if (t->flags & FLAG_HELPER)
		__sync_fetch_and_add(&shared.helpers_alive, -1);
	thread_free(t, slot);
	return 0;
}

#endif
