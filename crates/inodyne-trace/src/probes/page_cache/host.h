/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: the page cache with a different number in each field. */
#include "intf.h"

void host_plant_page_cache_key(struct page_cache_key *to)
{
	*to = (struct page_cache_key){ .device = 259 << 20 | 2, .call = 0, .contents = PAGES_OF_METADATA, .comm = "planted" };
}

void host_plant_page_cache_row(struct page_cache_row *to)
{
	*to = (struct page_cache_row){ .brought = 702, .again = 703 };
}

void host_plant_page_chunk_key(struct page_chunk_key *to)
{
	*to = (struct page_chunk_key){ .inode = 711, .chunk = 712, .device = 259 << 20 | 2, .generation = 713 };
}

void host_plant_page_chunk(struct page_chunk *to)
{
	*to = (struct page_chunk){ .brought = 0xff, .asked = 0x101, .beside = 0x1e, .name = "planted" };
}

void host_plant_page_totals(struct page_totals *to)
{
	*to = (struct page_totals){ .read = 721, .faulted = 722, .mapped = 723, .evicted = 724, .evicted_own = 725 };
}
