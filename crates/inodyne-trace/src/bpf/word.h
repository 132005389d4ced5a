/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Reads the kernel's memory a word at a time, which is faster than calling a helper for each field. */
#ifndef INODYNE_WORD_H
#define INODYNE_WORD_H

#include "kernel.h"

/* Stands for any eight-byte integer of the kernel. */
struct timespec64 {
	__s64 tv_sec;
} __attribute__((preserve_access_index));

/* Its type ID in the kernel's BTF; 0 if it has none. Not found by CO-RE, which may be given only some of the kernel's types. */
const volatile __u32 number_of_word;

void *bpf_rdonly_cast(const void *object, __u32 type) __weak __ksym;

/* Reads a word; false if there is none. The cast makes this one instruction (from Linux 6.2 on), which reads 0 if there is none. */
static __always_inline bool word_at(__u64 place, __u64 *word)
{
	__u32 type = number_of_word;

	if (type && bpf_ksym_exists(bpf_rdonly_cast)) {
		struct timespec64 *at = bpf_rdonly_cast((void *)place, type);

		*word = at->tv_sec;
		return true;
	}
	return !bpf_probe_read_kernel(word, sizeof(*word), (void *)place);
}

/* A field of at most eight bytes, where BPF_CORE_READ would copy it; 0 if it cannot be read. The bytes after a shorter one are dropped. */
#define FIELD(from, field)                                                                                \
	({                                                                                                \
		__u64 word = 0;                                                                           \
                                                                                                          \
		word_at((__u64)(from) + bpf_core_field_offset(typeof(*(from)), field), &word);            \
		(typeof((from)->field))word;                                                              \
	})

#endif
