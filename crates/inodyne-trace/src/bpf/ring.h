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

/* Sends a record; false if there is no room for it. */
#define ring_send(name, record, bytes) ring_send_to(&name, &name##_larger, record, bytes)

static __always_inline void *ring_reserve_in(void *first, void *place, __u64 bytes)
{
	__u32 zero = 0;
	void *larger = bpf_map_lookup_elem(place, &zero);

	return larger ? bpf_ringbuf_reserve(larger, bytes, 0) : bpf_ringbuf_reserve(first, bytes, 0);
}

static __always_inline bool ring_send_to(void *first, void *place, void *record, __u64 bytes)
{
	__u32 zero = 0;
	void *larger = bpf_map_lookup_elem(place, &zero);

	return !(larger ? bpf_ringbuf_output(larger, record, bytes, BPF_RB_NO_WAKEUP)
			: bpf_ringbuf_output(first, record, bytes, BPF_RB_NO_WAKEUP));
}

#endif
