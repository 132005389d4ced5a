/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Requests to block devices, on the whole machine, from the start of the command: who submitted them, from where in the kernel, how
 * many, how large, how long they queued and how long the device took.
 *
 * The submitter is known when a bio is submitted; after that the bio becomes part of a request, alone or with others, which is
 * completed by an interrupt. So what is known about a bio is kept under its address until the request is issued to the device, and
 * what is known about the request under the request's address until it is done. Requests are counted as in /proc/diskstats
 * (block/blk-mq.c: blk_account_io_done, blk_account_io_completion), so that the two agree.
 *
 * These are raw tracepoints without types: for each typed program (tp_btf) the kernel and libbpf search all of the kernel's BTF, which
 * takes milliseconds per program. Hence fields of kernel structures are read as words (FIELD).
 */
#ifndef INODYNE_BLOCK_PROBE_H
#define INODYNE_BLOCK_PROBE_H

#include "../../bpf/cgroup.h"
#include "../../bpf/known_stack.h"
#include "../../bpf/log2.h"
#include "../../bpf/maps.h"
#include "../../bpf/preempt.h"
#include "../../bpf/refuse.h"
#include "../../bpf/task.h"
#include "../../bpf/word.h"
#include "intf.h"
#include "kernel.h"

/* Set by user space once the command has ended. */
__u32 block_after;

/* Nothing signals when a bio is no longer needed, so the oldest are evicted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct block_bio);
} block_bios SEC(".maps");

/* A driver's requests have the same addresses all the time. So an entry stays when its request is done, with `issued` zero, and costs no
 * insertion the next time; except while there are many. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct block_request);
} block_requests SEC(".maps");

/* How many entries block_requests has, and how many may be of requests that are done. */
__u32 block_requests_used;
#define BLOCK_REQUESTS_KEPT 4096

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct block_key);
	__type(value, struct block_row);
} block_rows SEC(".maps");

/* How many entries of block_disks are taken. */
__u32 block_disks_used;

/* The last disks and their places, in one word each: the number, and index in block_disks plus one. */
#define BLOCK_LAST_PLACES_LOG2 4
__u64 block_last_places[1 << BLOCK_LAST_PLACES_LOG2];

/* Disk number -> index in block_disks. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BLOCK_DISKS);
	__type(key, __u32);
	__type(value, __u32);
} block_places SEC(".maps");

/* An array, as it is read while the command runs: while a process reads a hash map, its CPU runs no perf event programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BLOCK_DISKS);
	__type(key, __u32);
	__type(value, struct block_disk);
} block_disks SEC(".maps");

/* New rows are copies of this. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct block_row);
} block_blank SEC(".maps");

static __always_inline bool block_is_counted(struct request *rq)
{
	return shared.threads_born && (FIELD(rq, cmd_flags) & REQ_OP_MASK) < REQ_OP_DRV_IN;
}

static __always_inline struct gendisk *disk_of(struct request *rq)
{
	return FIELD(FIELD(rq, q), disk);
}

static __always_inline __u32 disk_number(struct gendisk *disk)
{
	return (__u32)FIELD(disk, major) << 20 | FIELD(disk, first_minor);
}

/* An entry of block_disks for a new disk: its index plus one; 0 if there is none. */
static __noinline __u32 block_disk_make(__u32 number)
{
	__u32 place = __sync_fetch_and_add(&block_disks_used, 1), *first;
	struct block_disk *disk = bpf_map_lookup_elem(&block_disks, &place);

	if (!disk)
		return 0;
	disk->number = number;
	if (!bpf_map_update_elem(&block_places, &number, &place, BPF_NOEXIST))
		return place + 1;
	/* Another CPU was faster. */
	disk->number = 0;
	first = bpf_map_lookup_elem(&block_places, &number);
	return first ? *first + 1 : 0;
}

/* Where the disk with that number is: as above. */
static __always_inline __u32 block_place_of(__u32 number)
{
	/* Multiplied, since the minor numbers of disks are multiples of 16. */
	volatile __u64 *last = &block_last_places[number * 0x9e3779b1u >> (32 - BLOCK_LAST_PLACES_LOG2)];
	__u64 word = *last;
	__u32 *place, found;

	if (word >> 32 == number && (__u32)word)
		return word;
	place = bpf_map_lookup_elem(&block_places, &number);
	found = place ? *place + 1 : block_disk_make(number);
	*last = (__u64)number << 32 | found;
	return found;
}

static __always_inline struct block_disk *block_disk_at(__u32 place)
{
	__u32 index = place - 1;

	return bpf_map_lookup_elem(&block_disks, &index);
}

static __always_inline __u16 block_flags(__u32 flags)
{
	__u16 own = 0;

	if (flags & REQUEST_FLAG(SYNC))
		own |= BLOCK_SYNC;
	if (flags & REQUEST_FLAG(META))
		own |= BLOCK_META;
	if (flags & REQUEST_FLAG(RAHEAD))
		own |= BLOCK_READ_AHEAD;
	if (flags & REQUEST_FLAG(FUA))
		own |= BLOCK_FUA;
	if (flags & REQUEST_FLAG(PREFLUSH))
		own |= BLOCK_PREFLUSH;
	if (flags & REQUEST_FLAG(BACKGROUND))
		own |= BLOCK_BACKGROUND;
	if (flags & REQUEST_FLAG(SWAP))
		own |= BLOCK_SWAP;
	return own;
}

/* What was recorded at a bio's address, if it belongs to this bio: an earlier bio may have had the same address, and this one's event may
 * have been missed. A request's first sector lies in its first bio, or in the bio from which that one was split off. */
static __always_inline struct block_bio *block_noted(__u64 address, __u64 sector)
{
	struct block_bio *noted = bpf_map_lookup_elem(&block_bios, &address);
	__u64 offset;

	if (!noted)
		return 0;
	offset = sector - noted->sector;
	return !offset || offset < noted->bytes >> 9 ? noted : 0;
}

/* Describes a request, and who submitted its first bio. A bio that was split off from a larger one points to it in bi_private
 * (block/bio.c: bio_chain). */
static __always_inline void block_describe(struct block_request *to, struct request *rq)
{
	struct block_device *part = FIELD(rq, part);
	struct bio *bio = FIELD(rq, bio);
	__u32 flags = FIELD(rq, cmd_flags);
	__u64 sector = FIELD(rq, __sector);
	struct block_bio *known = 0;

	if (bio) {
		known = block_noted((__u64)bio, sector);
		if (!known)
			known = block_noted((__u64)FIELD(bio, bi_private), sector);
	}
	if (known) {
		to->key.stack = known->stack;
		to->key.asker = known->asker;
		to->key.cgroup = known->cgroup;
		__builtin_memcpy(to->key.comm, known->comm, sizeof(to->key.comm));
		to->queued = known->at;
	}
	to->key.disk = disk_number(disk_of(rq));
	to->place = block_place_of(to->key.disk);
	to->key.device = part ? FIELD(part, bd_dev) : to->key.disk;
	to->key.op = flags & REQ_OP_MASK;
	to->key.flags = block_flags(flags);
	to->bytes = FIELD(rq, __data_len);
	to->made = FIELD(rq, start_time_ns);
}

/* Where what is known of a request would be; null if nothing ever was. */
static __always_inline struct block_request *block_request_place(struct request *rq)
{
	__u64 key = (__u64)rq;

	return bpf_map_lookup_elem(&block_requests, &key);
}

/* What is known of a request that has been issued and is not done. */
static __always_inline struct block_request *block_request_at(struct request *rq)
{
	struct block_request *place = block_request_place(rq);

	return place && place->issued ? place : 0;
}

/* Keeps what is known of a request, in its place if there is one; false if there is no room. Nobody else works on that request meanwhile. */
static __always_inline bool block_request_keep(struct request *rq, struct block_request *place, const struct block_request *new)
{
	__u64 key = (__u64)rq;

	if (place) {
		*place = *new;
		return true;
	}
	if (bpf_map_update_elem(&block_requests, &key, new, BPF_NOEXIST))
		return false;
	__sync_fetch_and_add(&block_requests_used, 1);
	return true;
}

static __always_inline void block_request_forget(struct request *rq, struct block_request *known)
{
	__u64 key = (__u64)rq;

	known->issued = 0;
	if (block_requests_used > BLOCK_REQUESTS_KEPT && !bpf_map_delete_elem(&block_requests, &key))
		__sync_fetch_and_add(&block_requests_used, -1);
}

/* Not every event is seen, as some kernels run no programs in the context of certain processes. If the completion of a request was
 * missed, another request at the same address must not be mistaken for it. */
static __always_inline bool block_is_of(struct block_request *known, struct request *rq)
{
	return known->made == FIELD(rq, start_time_ns);
}

static __always_inline struct block_row *block_row_of(struct block_key *key)
{
	struct block_row *row = bpf_map_lookup_elem(&block_rows, key), *blank;
	__u32 zero = 0;

	if (row)
		return row;
	blank = bpf_map_lookup_elem(&block_blank, &zero);
	if (!blank)
		return 0;
	bpf_map_update_elem(&block_rows, key, blank, BPF_NOEXIST);
	cgroup_show(key->cgroup);
	return bpf_map_lookup_elem(&block_rows, key);
}

static __always_inline void block_time(__u32 *histogram, __u64 ns)
{
	__u32 bucket = log2_of(ns);

	if (bucket >= BLOCK_TIMES)
		bucket = BLOCK_TIMES - 1;
	__sync_fetch_and_add(&histogram[bucket], 1);
}

/* A helper of the command also works for others. Workers of io_uring and of virtual machines, which are not followed, work for their
 * process. */
static __always_inline __u8 block_asker_of(struct task_struct *task, struct thread *t)
{
	if (task->flags & (PF_IO_WORKER | PF_USER_WORKER))
		t = thread_of(task->group_leader);
	if (t && t->number && !(t->flags & FLAG_HELPER))
		return BLOCK_OF_COMMAND;
	return task->flags & PF_KTHREAD ? BLOCK_OF_KERNEL : BLOCK_OF_OTHERS;
}

static __always_inline int block_queues(void *ctx, struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct block_bio new = {}, *place;
	__u64 key = (__u64)bio;
	struct known_stack *known;
	struct thread *t;

	if (!shared.threads_born)
		return 0;
	t = thread_of(task);
	new.at = bpf_ktime_get_ns();
	new.sector = FIELD(bio, bi_iter.bi_sector);
	new.bytes = FIELD(bio, bi_iter.bi_size);
	new.is_new = 1;
	known = known_stack_of(ctx, task, (t ? t->call : CALL_NONE) + FIELD(bio, bi_opf) * 7, STACK_OF_REQUEST);
	new.stack = take_known_stack(ctx, known, STACK_OF_REQUEST);
	new.asker = block_asker_of(task, t);
	if (new.asker == BLOCK_OF_OTHERS)
		new.cgroup = cgroup_here();
	if (task->flags & PF_WQ_WORKER) {
		/* Which kworker it was says nothing. */
		__builtin_memcpy(new.comm, "kworker", sizeof("kworker"));
	} else {
		bpf_get_current_comm(new.comm, sizeof(new.comm));
	}
	/* Most bios have the address of an earlier one. */
	place = bpf_map_lookup_elem(&block_bios, &key);
	if (place)
		*place = new;
	else
		bpf_map_update_elem(&block_bios, &key, &new, BPF_ANY);
	return 0;
}

SEC("raw_tp/block_bio_queue")
int HOLDING_PROG(block_queue, struct bio *bio)
{
	refusable(REFUSE_BLOCK);
	return block_queues(ctx, bio);
}

DONE_AGAIN(block_queue_again);

/* For kernels where the first program can be preempted: handles the bios for which it was skipped meanwhile. What it did record is
 * still marked as new, unlike what an earlier bio at the same address has left. */
SEC("raw_tp/block_bio_queue")
int HOLDING_PROG(block_queue_again, struct bio *bio)
{
	__u64 key = (__u64)bio;
	struct block_bio *known = block_noted(key, FIELD(bio, bi_iter.bi_sector));

	if (!shared.threads_born)
		return 0;
	if (!known || !known->is_new) {
		do_again(block_queue_again);
		block_queues(ctx, bio);
		known = block_noted(key, FIELD(bio, bi_iter.bi_sector));
	}
	if (known)
		known->is_new = 0;
	return 0;
}

/* Whether a request begins where a recent stream in its direction ended. Its own end replaces that stream's, or else the oldest one. */
static __always_inline bool block_goes_on(struct block_disk *disk, __u64 write, __u64 sector, __u64 end)
{
	__u64 *ends = &disk->next_sector[(write & 1) * BLOCK_STREAMS], next = end, last;
	bool goes_on = false;
	int i;

	for (i = 0; i < BLOCK_STREAMS && !goes_on; i++) {
		last = ends[i];
		ends[i] = next;
		next = last;
		goes_on = last == sector;
	}
	return goes_on;
}

/* One request fewer is in flight. */
static __always_inline void block_leaves(struct block_disk *disk, __u64 now)
{
	/* Read before the decrement: as soon as none is in flight, another CPU may set it again. */
	__u64 since = *(volatile __u64 *)&disk->since;

	if (__sync_fetch_and_add(&disk->in_flight, -1) == 1 && since <= now)
		__sync_fetch_and_add(&disk->busy_ns, now - since);
}

static __always_inline int block_issues(struct request *rq)
{
	struct block_request new = {}, *place, *again;
	struct block_disk *disk;
	__u64 now, sector;
	bool was_missed;

	if (!block_is_counted(rq))
		return 0;
	now = bpf_ktime_get_ns();
	place = block_request_place(rq);
	again = place && place->issued ? place : 0;
	if (again && !again->arrived && block_is_of(again, rq)) {
		/* Issued again: the driver had no room for it before. */
		again->issued = now;
		return 0;
	}
	block_describe(&new, rq);
	new.issued = now;
	/* The earlier request still counts as in flight, and this one takes its place; on its own disk, as disks may share their tags. */
	was_missed = again && !again->arrived;
	if (was_missed && again->place != new.place) {
		disk = block_disk_at(again->place);
		if (disk)
			block_leaves(disk, now);
		was_missed = false;
	}
	disk = block_disk_at(new.place);
	if (disk) {
		sector = FIELD(rq, __sector);
		new.sequential = new.bytes && block_goes_on(disk, new.key.op, sector, sector + (new.bytes >> 9));
		if (!was_missed && !__sync_fetch_and_add(&disk->in_flight, 1))
			disk->since = now;
	}
	if (!block_request_keep(rq, place, &new)) {
		lose(LOST_REQUESTS);
		/* Its end will not be seen. */
		if (disk && !was_missed)
			block_leaves(disk, now);
	}
	return 0;
}

SEC("raw_tp/block_rq_issue")
int HOLDING_PROG(block_issue, struct request *rq)
{
	return block_issues(rq);
}

DONE_AGAIN(block_issue_again);

/* Records a request unless it was already recorded. */
static __always_inline bool block_issues_if_skipped(struct request *rq)
{
	struct block_request *known = block_request_at(rq);

	if ((known && block_is_of(known, rq)) || !block_is_counted(rq))
		return false;
	block_issues(rq);
	return true;
}

/* Like block_queue_again, but for requests; an interrupt may also issue one while another is being recorded. */
SEC("raw_tp/block_rq_issue")
int HOLDING_PROG(block_issue_again, struct request *rq)
{
	if (block_issues_if_skipped(rq))
		do_again(block_issue_again);
	return 0;
}

DONE_AGAIN(block_issue_again_again);

SEC("raw_tp/block_rq_issue")
int HOLDING_PROG(block_issue_again_again, struct request *rq)
{
	if (block_issues_if_skipped(rq))
		do_again(block_issue_again_again);
	return 0;
}

/* Counts what has completed of a request. Not static, so it is verified once. */
__noinline int block_count(struct block_request *request, __u32 bytes, __u32 is_over)
{
	struct block_disk *disk;
	struct block_row *row;
	struct block_key key;
	__u64 now;

	if (!request)
		return 0;
	/* The verifier of Linux 6.1 does not accept a map key in that memory. */
	key = request->key;
	row = block_row_of(&key);
	disk = block_disk_at(request->place);
	if (!row || !disk) {
		lose(LOST_REQUESTS);
		if (disk && request->issued && !request->arrived)
			block_leaves(disk, bpf_ktime_get_ns());
		return 0;
	}
	__sync_fetch_and_add(&row->bytes, bytes);
	if (request->key.op == REQ_OP_READ)
		__sync_fetch_and_add(&disk->read_bytes, bytes);
	else if (request->key.op == REQ_OP_WRITE)
		__sync_fetch_and_add(&disk->written_bytes, bytes);
	if (is_over) {
		__sync_fetch_and_add(&row->requests, 1);
		__sync_fetch_and_add(&disk->requests, 1);
	}
	if (!request->issued || request->arrived)
		return 0;
	now = bpf_ktime_get_ns();
	__sync_fetch_and_add(&row->timed, 1);
	__sync_fetch_and_add(&row->sequential, request->sequential);
	__sync_fetch_and_add(&row->device_ns, now - request->issued);
	__sync_fetch_and_add(&disk->device_ns, now - request->issued);
	block_time(row->device_times, now - request->issued);
	if (request->queued) {
		__sync_fetch_and_add(&row->queue_ns, request->issued - request->queued);
		block_time(row->queue_times, request->issued - request->queued);
	}
	if (request->bytes) {
		__u32 size = log2_of(request->bytes >> 9);

		__sync_fetch_and_add(&row->sizes[size < BLOCK_SIZES ? size : BLOCK_SIZES - 1], 1);
	}
	block_leaves(disk, now);
	return 0;
}

/* A write with a flush before or after it completes twice: once for its data, and once as a whole (block/blk-flush.c). */
static __always_inline bool block_flushes_yet(__u32 flags, __u8 op)
{
	return (flags & RQF_FLUSH_SEQ) && op != REQ_OP_FLUSH;
}

static __always_inline int block_completes(struct request *rq, unsigned int bytes)
{
	struct block_request request = {}, *known;
	struct block_disk *disk;
	bool is_whole, is_flushed, is_over;
	__u32 flags;

	if (!block_is_counted(rq))
		return 0;
	known = block_request_at(rq);
	if (known && !block_is_of(known, rq)) {
		disk = block_disk_at(known->place);
		if (disk && !known->arrived)
			block_leaves(disk, bpf_ktime_get_ns());
		block_request_forget(rq, known);
		known = 0;
	}
	if (known)
		request = *known;
	else
		block_describe(&request, rq);
	request.key.after = !!block_after;
	is_whole = bytes >= FIELD(rq, __data_len);
	flags = FIELD(rq, rq_flags);
	is_flushed = block_flushes_yet(flags, request.key.op);
	is_over = is_whole && !is_flushed && ((flags & RQF_IO_STAT) || request.key.op == REQ_OP_FLUSH);
	if (!is_whole)
		request.arrived = 1; /* not really: makes block_count leave its times for the end */
	block_count(&request, bytes, is_over);
	if (!known || !is_whole)
		return 0;
	if (is_flushed)
		known->arrived = 1;
	else
		block_request_forget(rq, known);
	return 0;
}

SEC("raw_tp/block_rq_complete")
int HOLDING_PROG(block_complete, struct request *rq, int error, unsigned int bytes)
{
	return block_completes(rq, bytes);
}

/* Counts a completion unless it was already counted: a request that was is no longer waited for. */
static __always_inline bool block_completes_if_skipped(struct request *rq, unsigned int bytes)
{
	struct block_request *known = block_request_at(rq);

	if (!known || !block_is_of(known, rq) || bytes < FIELD(rq, __data_len))
		return false;
	if (known->arrived && block_flushes_yet(FIELD(rq, rq_flags), known->key.op))
		return false;
	block_completes(rq, bytes);
	return true;
}

DONE_AGAIN(block_complete_again);

/*
 * Runs after block_complete, for completions in an interrupt that arrives while another completion is being counted: the kernel skips
 * the first program for these.
 */
SEC("raw_tp/block_rq_complete")
int HOLDING_PROG(block_complete_again, struct request *rq, int error, unsigned int bytes)
{
	if (block_completes_if_skipped(rq, bytes))
		do_again(block_complete_again);
	return 0;
}

DONE_AGAIN(block_complete_again_again);

SEC("raw_tp/block_rq_complete")
int HOLDING_PROG(block_complete_again_again, struct request *rq, int error, unsigned int bytes)
{
	if (block_completes_if_skipped(rq, bytes))
		do_again(block_complete_again_again);
	return 0;
}

static __always_inline void block_merged(struct gendisk *gendisk)
{
	struct block_disk *disk;

	if (!shared.threads_born)
		return;
	disk = block_disk_at(block_place_of(disk_number(gendisk)));
	if (disk)
		__sync_fetch_and_add(&disk->merged, 1);
}

HOLDING_PROG_AGAIN("raw_tp/block_bio_backmerge", block_merge_after, struct bio *bio)
{
	block_merged(FIELD(FIELD(bio, bi_bdev), bd_disk));
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/block_bio_frontmerge", block_merge_before, struct bio *bio)
{
	block_merged(FIELD(FIELD(bio, bi_bdev), bd_disk));
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/block_rq_merge", block_merge_requests, struct request *rq)
{
	block_merged(disk_of(rq));
	return 0;
}

#endif
