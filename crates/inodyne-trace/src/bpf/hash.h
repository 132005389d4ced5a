/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* The hash of a name or of the end of a path. */
#ifndef INODYNE_HASH_H
#define INODYNE_HASH_H

#include "kernel.h"

/* The longest possible file name, with its terminating zero. */
#define NAME_LENGTH 256

/* Hashes eight bytes at a time; `name` has at least NAME_LENGTH readable bytes, of which the first `length` count. */
static __always_inline __u64 name_hash(__u64 seed, const __u8 *name, __u32 length)
{
	__u64 hash = 0xcbf29ce484222325ULL ^ seed;
	__u32 end = length;

	/* Masking makes it a new scalar to the verifier, which would otherwise continue separately for each length that ends the loop. */
	barrier_var(end);
	end &= 2 * NAME_LENGTH - 1;
	for (__u32 at = 0; at < NAME_LENGTH; at += 8) {
		__u64 word;

		if (at >= end)
			break;
		word = *(const __u64 *)(name + at);
		if (end - at < 8)
			word &= (1ULL << (8 * (end - at))) - 1;
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

#endif
