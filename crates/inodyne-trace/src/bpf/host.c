// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * The plain C of the kernel side, compiled for the host, so that this crate's tests run the same state machine and the same
 * histogram as the kernel. host_probes.h, written by build.rs, lists what each probe adds (its host.h).
 */
#define __always_inline inline __attribute__((always_inline))

#include "clock.h"
#include "host_probes.h"
#include "x32.h"

/* For the tests of each field's meaning: puts a different number into each field. */
void host_plant_stack_record(struct stack_record *to)
{
	*to = (struct stack_record){ .stack = 50, .depth = 2, .truncated = 0, .address = { 51, 52 } };
}

void host_plant_shared(struct shared *to)
{
	*to = (struct shared){ .threads_born = 62, .slots_used = 63, .helpers_born = 64, .helpers_alive = 65, .tracer = 66 };
	for (int loss = 0; loss < LOSSES; loss++)
		to->lost[loss] = 1000 + loss;
}

__u16 host_call_of_number(__u64 number) { return call_of_number(number); }

void host_born(struct thread *t, __u64 now) { clock_born(t, now); }
void host_enter(struct thread *t, __u64 now, __u16 call) { clock_enter(t, now, call); }
void host_enter_untimed(struct thread *t, __u16 call) { clock_enter_untimed(t, call); }
int host_exit_untimed(struct thread *t) { return clock_exit_untimed(t); }
__u64 host_exit(struct thread *t, __u64 now, __u32 call_slot) { return clock_exit(t, now, call_slot); }
void host_out(struct thread *t, __u64 now, __u32 call_slot, int blocked) { clock_switch_out(t, now, call_slot, blocked); }
__u64 host_in(struct thread *t, __u64 now) { return clock_switch_in(t, now); }
void host_end(struct thread *t, __u64 now, __u32 call_slot) { clock_charge_running(t, now, call_slot); }
