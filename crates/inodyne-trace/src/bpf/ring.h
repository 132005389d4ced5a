/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Ring buffers that the reader replaces with larger ones as more data arrives (rings.rs): next to each there is a map with one entry for
 * the larger one, which is empty until there is one. An entry for the first one, too, would add some 10 ms to start-up, since the kernel
 * waits for all programs whenever such an entry is written.
 */
#ifndef INODYNE_RING_H
#define INODYNE_RING_H

#include "kernel.h"

/* Their type, for the verifier. The reader chooses their sizes. */
#define RINGBUF                                                                                                            \
	struct {                                                                                                           \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                                                        \
		__uint(max_entries, 4096);                                                                                 \
	}

#define RING(name)                                                                                                         \
	RINGBUF name SEC(".maps");                                                                                         \
	struct {                                                                                                           \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                                                  \
		__uint(max_entries, 1);                                                                                    \
		__type(key, __u32);                                                                                        \
		__array(values, RINGBUF);                                                                                  \
	} name##_larger SEC(".maps")

/* Reserves room for a record in the ring buffer of this name; null if there is none. */
#define ring_reserve(name, bytes) ring_reserve_in(&name, &name##_larger, bytes)

/* Sends a record that room was reserved for. */
#define ring_submit(name, record) ring_submit_to(&name, &name##_larger, record)

/* Sends a record; false if there is no room for it. */
#define ring_send(name, record, bytes) ring_send_to(&name, &name##_larger, record, bytes)

/* The reader is woken by each record that is sent while what is there exceeds a quarter of the ring buffer by less than this, in bytes. */
#define RING_WAKING 4096

/*
 * The reader looks from time to time without being woken, and replaces a ring buffer in which much arrives by one with room for much more:
 * only the first one may fill before it looks. So it is woken once a quarter of that is full. Two CPUs that send at the same time may each
 * find less than a quarter, so the records that follow wake it, too.
 */
static __always_inline __u64 ring_flags(void *first, void *larger)
{
	__u64 beyond;

	if (larger)
		return BPF_RB_NO_WAKEUP;
	beyond = bpf_ringbuf_query(first, BPF_RB_AVAIL_DATA) - bpf_ringbuf_query(first, BPF_RB_RING_SIZE) / 4;
	return beyond < RING_WAKING ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void *ring_reserve_in(void *first, void *place, __u64 bytes)
{
	__u32 zero = 0;
	void *larger = bpf_map_lookup_elem(place, &zero);

	return larger ? bpf_ringbuf_reserve(larger, bytes, 0) : bpf_ringbuf_reserve(first, bytes, 0);
}

static __always_inline void ring_submit_to(void *first, void *place, void *record)
{
	__u32 zero = 0;

	bpf_ringbuf_submit(record, ring_flags(first, bpf_map_lookup_elem(place, &zero)));
}

static __always_inline bool ring_send_to(void *first, void *place, void *record, __u64 bytes)
{
	__u32 zero = 0;
	void *larger = bpf_map_lookup_elem(place, &zero);

	return !(larger ? bpf_ringbuf_output(larger, record, bytes, BPF_RB_NO_WAKEUP)
			: bpf_ringbuf_output(first, record, bytes, ring_flags(first, larger)));
}

#endif
