/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: an account and a record with a different number in each field. */
#include "intf.h"

void host_plant_thread(struct thread *to)
{
	*to = (struct thread){
		.task = 201,
		.since = 202,
		.user_ns = 203,
		.call_start = 204,
		.call_blocked_ns = 205,
		.call_ready_ns = 206,
		.call = 1, /* write */
		.group = 208,
		.state = STATE_BLOCKED,
		.flags = FLAG_HELPER | FLAG_KTHREAD,
		.depth = 3,
		.joined = 1,
		.number = 209,
		.touched = { 1 },
		.random = 236,
		.calls = 230,
		.untimed = 0,
		.stands_for = 233,
		.untimed_ns = 234,
		.stood_ns = 235,
		.wake_ns = 210,
		.stack = 211,
		.waker_stack = 212,
		.waker_tid = 213,
		.waker = WAKER_INTERRUPT,
		.waker_number = 214,
		.slot = 228,
		.ready_ns = 215,
		.blocked_ns = 216,
		.waits = 217,
		.preemptions = 218,
		.unseen_ns = 219,
		.born = 221,
		.ended = 222,
		.runtime_start = 223,
		.runtime = 224,
		.parent = 225,
		.pid = 226,
		.tid = 227,
		.pid_here = 231,
		.cgroup = 232,
		.comm = "planted",
		.kernel_ns = { 229 },
	};
}

void host_plant_program(struct program_record *to)
{
	*to = (struct program_record){
		.kind = RECORD_PROGRAM,
		.thread = 302,
		.pid = 303,
		.args_length = 5,
		.at = 305,
		.file = "/bin/file",
		.args = "ab\0c",
	};
}

void host_plant_exit(struct exit_record *to)
{
	*to = (struct exit_record){ .kind = RECORD_EXIT, .thread = 311, .status = 3 << 8 };
}
