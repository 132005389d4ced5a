// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * The plain C of the kernel side, compiled for the host: the tests of this crate run the same state machine and the
 * same histogram that the kernel runs, and compare the layout of every shared structure with its Rust twin.
 */
#include <stddef.h>

#define __always_inline inline __attribute__((always_inline))

#include "clock.h"
#include "histogram.h"

__u32 host_bucket_of(__u64 ns) { return bucket_of(ns); }
void host_born(struct thread *t, __u64 now) { clock_born(t, now); }
void host_enter(struct thread *t, __u64 now, __u16 call) { clock_enter(t, now, call); }
__u64 host_exit(struct thread *t, __u64 now, __u32 ordinal) { return clock_exit(t, now, ordinal); }
void host_out(struct thread *t, __u64 now, __u32 ordinal, int blocked) { clock_switch_out(t, now, ordinal, blocked); }
__u64 host_in(struct thread *t, __u64 now) { return clock_switch_in(t, now); }
void host_end(struct thread *t, __u64 now, __u32 ordinal) { clock_charge_running(t, now, ordinal); }

const size_t host_sizes[] = {
	sizeof(struct thread), sizeof(struct cell), sizeof(struct wait_key), sizeof(struct wait_sum),
	sizeof(struct sample_key), sizeof(struct stack_frames), sizeof(struct thread_record),
	sizeof(struct program_record), sizeof(struct interval_record), sizeof(struct dtype_fs),
	sizeof(struct directory_key), sizeof(struct directory), sizeof(struct forced_key), sizeof(struct forced_sum),
	sizeof(struct shared), sizeof(struct path_count), sizeof(struct work_part), offsetof(struct work_record, part),
	sizeof(struct user_frames),
};
const size_t host_offsets[] = {
	offsetof(struct thread, number), offsetof(struct thread, waker), offsetof(struct thread, born),
	offsetof(struct thread, comm), offsetof(struct thread, kernel_ns), offsetof(struct cell, histogram),
	offsetof(struct cell, errnos), offsetof(struct program_record, args), offsetof(struct interval_record, call),
	offsetof(struct directory, name), offsetof(struct shared, untyped), offsetof(struct path_count, path),
	offsetof(struct thread, slot),
};
