/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Folios: what the page cache consists of, one page or several. */
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

/* Until Linux 6.5; then the order lies in the lowest byte of the flags of the second page (include/linux/mm_types.h). */
struct folio___before {
	unsigned char _folio_order;
};

#pragma clang attribute pop

/* The value is of this kernel or that. */
enum pageflags {
	PG_head,
};

/* Of this machine: 16 or 64 KiB on some of arm64. Set before loading. */
const volatile __u32 page_bytes = 4096;

/* How many pages a folio has. Its flags come first in it, whatever their type is called. */
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
