/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Folios: the units of the page cache, of one or more pages. */
#ifndef INODYNE_FOLIO_H
#define INODYNE_FOLIO_H

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct page {
	unsigned long flags;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
};

/* Until Linux 6.5; after that, the order is in the lowest byte of the second page's flags (include/linux/mm_types.h). */
struct folio___before {
	unsigned char _folio_order;
};

#pragma clang attribute pop

/* The value differs between kernels; CO-RE finds it. */
enum pageflags {
	PG_head,
};

/* The page size of this machine: 16 or 64 KiB on some arm64 machines. Set before loading. */
const volatile __u32 page_bytes = 4096;

/* The number of pages in a folio. The flags are its first member, whatever their type is called. */
static __always_inline __u64 folio_pages(const void *folio)
{
	const struct folio___before *before = folio;
	unsigned long flags = 0;
	__u8 order = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags & 1UL << bpf_core_enum_value(enum pageflags, PG_head)))
		return 1;
	if (bpf_core_field_exists(before->_folio_order))
		order = BPF_CORE_READ(before, _folio_order);
	else
		bpf_probe_read_kernel(&order, sizeof(order), folio + bpf_core_type_size(struct page));
	return 1ULL << (order & 31);
}

#endif
