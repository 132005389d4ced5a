/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The page cache: which pages the command brought into it, whether it asked for them later, and what was evicted for lack of memory.
 *
 * Pages are added to the cache in the context of the reader, including those that are read ahead, so it is known for whom. What a reader
 * asks for can be seen from Linux 6.12 on: for calls by mm_filemap_get_pages, once the first pages of the rest of a call are there, and for
 * page faults by mm_filemap_fault, before they are. A fault also maps pages around its own that are in memory (mm_filemap_map_pages);
 * whether those are used cannot be seen. So a page was certainly, possibly or not asked for; this is kept for each page, 64 to a row.
 *
 * Pages that are created in order to be written do not count as brought in, since they are not read from anywhere. They are recognised by
 * the call, and in calls that both read and write, by whether anybody has the file open for writing.
 *
 * Every page that is read gets here, so these are BTF-typed programs (tp_btf): they can look into an inode without calling a BPF helper.
 */
#ifndef INODYNE_PAGE_CACHE_PROBE_H
#define INODYNE_PAGE_CACHE_PROBE_H

#include "../../bpf/file.h"
#include "../../bpf/folio.h"
#include "../../bpf/maps.h"
#include "../../bpf/preempt.h"
#include "../../bpf/refuse.h"
#include "../block/probe.bpf.h"
#include "intf.h"

/* Consecutive chunks that are looked at without finding a known one: readahead does not reach farther. */
#define CHUNKS_IN_VAIN 4
/* Larger than any folio; and a call gets here again for what it reads later. */
#define CHUNKS_AT_ONCE 64

/* These three grow as needed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct page_cache_key);
	__type(value, struct page_cache_row);
} page_cache_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct page_chunk_key);
	__type(value, struct page_chunk);
} page_chunks SEC(".maps");

/* Addresses of inodes that have chunks, or had some. For any other file that is read, this is the only look-up. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u8);
} page_inodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct page_totals);
} page_totals SEC(".maps");

/* Rows added to `page_chunks` so far. */
__u32 page_chunks_begun;

/* Pages that were brought in, but for which there was no room to note what becomes of them. */
__u64 pages_not_kept;

/* 1 if mm_filemap_get_pages reports the page after the last one, as it did until that was fixed ("filemap: fix the last_index of
 * mm_filemap_get_pages"). */
__u64 page_last_is_beyond;

/* A range of pages of a file, which is processed a chunk at a time. */
struct page_span {
	struct page_chunk_key key;
	__u64 inode; /* its address */
	__u64 from, to; /* the first page, and the one after the last */
};

/* Not on the stack, where the verifier would explore each value of the counts separately. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct page_progress);
} page_progress SEC(".maps");

enum page_mark {
	MARK_BROUGHT,
	MARK_ASKED,
	MARK_BESIDE,
	MARK_EVICTED,
};

static __always_inline struct page_totals *page_totals_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&page_totals, &zero);
}

static __always_inline struct page_progress *page_progress_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&page_progress, &zero);
}

static __always_inline void page_span_of(struct page_span *span, struct inode *inode, __u64 from, __u64 to)
{
	span->key.inode = inode->i_ino;
	span->key.device = inode->i_sb->s_dev;
	span->key.generation = inode->i_generation;
	span->inode = (__u64)inode;
	span->from = from;
	span->to = to;
}

/* Whether the command has brought in any page of this file. */
static __always_inline bool page_is_known(struct inode *inode)
{
	__u64 address = (__u64)inode;

	return page_chunks_begun && bpf_map_lookup_elem(&page_inodes, &address);
}

/* One of the file's names, as long as it has any in memory. */
static __always_inline void page_file_name(__u8 *name, struct inode *inode)
{
	__u64 alias, offset;
	struct dentry *dentry;

	if (bpf_core_field_exists(struct dentry, d_u.d_alias))
		offset = bpf_core_field_offset(struct dentry, d_u.d_alias);
	else if (bpf_core_field_exists(struct dentry___7_3, d_alias))
		offset = bpf_core_field_offset(struct dentry___7_3, d_alias);
	else
		return;
	if (!bpf_core_field_exists(struct inode, i_dentry))
		return;
	alias = (__u64)BPF_CORE_READ(inode, i_dentry.first);
	if (!alias)
		return;
	dentry = (struct dentry *)(alias - offset);
	bpf_probe_read_kernel_str(name, PAGE_FILE_NAME, BPF_CORE_READ(dentry, d_name.name));
}

static __noinline struct page_chunk *page_chunk_begin(struct page_chunk_key *key, __u64 inode)
{
	struct page_chunk first = {};
	__u8 known = 1;

	if (bpf_map_update_elem(&page_inodes, &inode, &known, BPF_ANY))
		return 0;
	page_file_name(first.name, (struct inode *)inode);
	if (!bpf_map_update_elem(&page_chunks, key, &first, BPF_NOEXIST))
		__sync_fetch_and_add(&page_chunks_begun, 1);
	return bpf_map_lookup_elem(&page_chunks, key);
}

/* How many bits are set. */
static __always_inline __u32 bits_of(__u64 word)
{
	word -= word >> 1 & 0x5555555555555555;
	word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return word * 0x0101010101010101 >> 56;
}

/* Marks one chunk of a span. Returns 1 to stop: after the last one, or if there is nothing more to find. */
static __always_inline long page_mark_chunk(struct page_span *span, enum page_mark mark)
{
	__u64 begin = span->from, bits = ~0ULL, before;
	__u64 next = (begin / PAGES_IN_CHUNK + 1) * PAGES_IN_CHUNK;
	struct page_progress *progress = page_progress_here();
	struct page_chunk_key key = span->key;
	struct page_totals *totals;
	struct page_chunk *chunk;

	if (begin >= span->to || !progress)
		return 1;
	bits <<= begin % PAGES_IN_CHUNK;
	if (next > span->to)
		bits &= ~0ULL >> ((next - span->to) & (PAGES_IN_CHUNK - 1));
	span->from = next;
	key.chunk = begin / PAGES_IN_CHUNK;
	chunk = bpf_map_lookup_elem(&page_chunks, &key);
	if (!chunk && (mark == MARK_BROUGHT || (mark == MARK_ASKED && span->inode)))
		chunk = page_chunk_begin(&key, span->inode);
	if (!chunk) {
		if (mark == MARK_BROUGHT)
			__sync_fetch_and_add(&pages_not_kept, bits_of(bits));
		return mark != MARK_BROUGHT && ++progress->in_vain >= CHUNKS_IN_VAIN;
	}
	progress->in_vain = 0;
	switch (mark) {
	case MARK_BROUGHT:
		before = __sync_fetch_and_or(&chunk->brought, bits);
		progress->known += bits_of(before & bits);
		return 0;
	case MARK_ASKED:
		if ((chunk->asked & bits) != bits)
			__sync_fetch_and_or(&chunk->asked, bits);
		break;
	case MARK_BESIDE:
		if ((chunk->beside & bits) != bits)
			__sync_fetch_and_or(&chunk->beside, bits);
		break;
	case MARK_EVICTED:
		totals = page_totals_here();
		if (totals)
			totals->evicted_own += bits_of(chunk->brought & bits);
		break;
	}
	progress->known++;
	return 0;
}

static long page_mark_brought(__u64 index, void *span)
{
	return page_mark_chunk(span, MARK_BROUGHT);
}

static long page_mark_asked(__u64 index, void *span)
{
	return page_mark_chunk(span, MARK_ASKED);
}

static long page_mark_beside(__u64 index, void *span)
{
	return page_mark_chunk(span, MARK_BESIDE);
}

static long page_mark_evicted(__u64 index, void *span)
{
	return page_mark_chunk(span, MARK_EVICTED);
}

/* Marks all of a span; the value is what was counted. */
#define page_mark(span, chunks, step)                                               \
	({                                                                          \
		struct page_progress *progress = page_progress_here();              \
                                                                                    \
		if (progress)                                                       \
			*progress = (struct page_progress){};                       \
		bpf_loop(chunks, step, span, 0);                                    \
		progress ? progress->known : 0;                                     \
	})

/* The current thread if it is one of the command's; otherwise 0. What a call of a helper or of an io_uring worker reads is not known. */
static __always_inline struct thread *page_reader(struct task_struct *task)
{
	struct thread *t = shared.threads_born ? thread_of(task) : 0;

	return t && t->number && !(t->flags & FLAG_HELPER) ? t : 0;
}

/* Whether the call in progress creates pages in order to write them. */
static __always_inline bool page_is_made(struct thread *t, struct inode *inode)
{
	switch (t->call) {
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
	case CALL_WRITE_32:
	case CALL_PWRITE64_32:
	case CALL_WRITEV_32:
	case CALL_PWRITEV_32:
	case CALL_PWRITEV2_32:
		return true;
	case __NR_copy_file_range:
	case __NR_splice:
	case __NR_sendfile:
	case __NR_io_submit:
	case __NR_io_uring_enter:
	case CALL_COPY_FILE_RANGE_32:
	case CALL_SPLICE_32:
	case CALL_SENDFILE_32:
	case CALL_SENDFILE64_32:
	case CALL_IO_SUBMIT_32:
	case CALL_IO_URING_ENTER_32:
		return inode->i_writecount.counter > 0;
	default:
		return false;
	}
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int HOLDING_PROG(page_brought, struct folio *folio)
{
	struct thread *t = page_reader(bpf_get_current_task_btf());
	struct page_cache_row *row, first = {};
	struct page_cache_key key = {};
	struct page_span span = {};
	struct inode *inode;
	__u64 index, pages;
	__u32 kind, again = 0;

	refusable(REFUSE_PAGE_CACHE);
	if (!t)
		return 0;
	inode = folio->mapping->host;
	if (page_is_made(t, inode))
		return 0;
	index = folio->index;
	pages = folio_pages(folio);
	key.device = inode->i_sb->s_dev;
	key.call = t->call;
	key.contents = PAGES_OF_METADATA;
	kind = inode->i_mode & S_IFMT;
	if (kind == S_IFBLK)
		/* The inode that holds a block device's own pages has the device number as its inode number (block/bdev.c). */
		key.device = inode->i_ino;
	if (kind == S_IFREG) {
		key.contents = PAGES_OF_FILE;
		page_span_of(&span, inode, index, index + pages);
		again = page_mark(&span, CHUNKS_AT_ONCE, page_mark_brought);
	}
	/* Until its new program has started, a process still has its old name. */
	if (!is_execve(t->call))
		bpf_get_current_comm(key.comm, sizeof(key.comm));
	row = bpf_map_lookup_elem(&page_cache_rows, &key);
	if (!row) {
		bpf_map_update_elem(&page_cache_rows, &key, &first, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&page_cache_rows, &key);
		if (!row) {
			lose_some(LOST_REQUESTS, pages);
			return 0;
		}
	}
	__sync_fetch_and_add(&row->brought, pages);
	if (again)
		__sync_fetch_and_add(&row->again, again);
	return 0;
}

/*
 * The page at which the call in progress begins to read. If the kernel has to wait for one of the pages that a call finds in one batch, it
 * does not report those before it (filemap_get_pages() in mm/filemap.c), so the first page reported need not be where the call began.
 */
static __always_inline __u64 page_begin(struct task_struct *task, struct thread *t, __u64 shown)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 pointer = 0, at = 0;
	__u32 descriptor = 0;
	struct file *file;

	switch (t->call) {
	case __NR_read:
	case __NR_readv:
		descriptor = CALL_ARG1(regs);
		break;
	case __NR_pread64:
	case __NR_preadv:
	case __NR_preadv2:
		at = CALL_ARG4(regs) / page_bytes;
		return at < shown ? at : shown;
	case __NR_copy_file_range:
	case __NR_splice:
		descriptor = CALL_ARG1(regs);
		pointer = CALL_ARG2(regs);
		break;
	case __NR_sendfile:
		descriptor = CALL_ARG2(regs);
		pointer = CALL_ARG3(regs);
		break;
	default:
		return shown;
	}
	if (pointer) {
		if (bpf_probe_read_user(&at, sizeof(at), (void *)pointer))
			return shown;
	} else {
		file = file_of(task, descriptor);
		if (!file)
			return shown;
		at = BPF_CORE_READ(file, f_pos);
	}
	at /= page_bytes;
	return at < shown ? at : shown;
}

SEC("tp_btf/mm_filemap_get_pages")
int HOLDING_PROG(page_read, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = page_reader(task);
	struct page_totals *totals;
	struct page_span span = {};
	struct inode *inode;
	__u64 from, end, whole;
	bool is_known;

	if (!t) {
		/* The tracer reads one page, the first of a file, while it measures its own cost (calibrate.rs). */
		if (!shared.threads_born && !first && last <= 1 && thread_of(task))
			page_last_is_beyond = last;
		return 0;
	}
	end = last + 1 - page_last_is_beyond;
	inode = mapping->host;
	if ((inode->i_mode & S_IFMT) != S_IFREG)
		return 0;
	whole = ((__u64)inode->i_size + page_bytes - 1) / page_bytes;
	if (end > whole)
		end = whole;
	if (end <= first)
		return 0;
	is_known = page_is_known(inode);
	/* A long call gets here for each part of it, and is counted in full the first time. */
	if (t->call == CALL_NONE || t->pages_of_call != t->call_start) {
		from = is_known ? page_begin(task, t, first) : first;
		totals = page_totals_here();
		if (totals)
			totals->read += end - from;
		t->pages_of_call = t->call_start;
	} else {
		from = t->page_read < first ? t->page_read : first;
	}
	t->page_read = first;
	if (!is_known)
		return 0;
	page_span_of(&span, inode, from, end);
	span.inode = 0;
	page_mark(&span, CHUNKS_AT_ONCE, page_mark_asked);
	return 0;
}

SEC("tp_btf/mm_filemap_fault")
int HOLDING_PROG(page_fault, struct address_space *mapping, unsigned long index)
{
	struct thread *t = page_reader(bpf_get_current_task_btf());
	struct page_totals *totals;
	struct page_span span = {};

	if (!t)
		return 0;
	t->page_faulted = index;
	totals = page_totals_here();
	if (totals)
		totals->faulted++;
	page_span_of(&span, mapping->host, index, index + 1);
	page_mark(&span, 1, page_mark_asked);
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages")
int HOLDING_PROG(page_map, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct page_totals *totals;
	struct page_span span = {};
	struct thread *t;
	__u32 known;

	if (!page_chunks_begun)
		return 0;
	t = page_reader(bpf_get_current_task_btf());
	if (!t || !page_is_known(mapping->host))
		return 0;
	page_span_of(&span, mapping->host, first, (__u64)last + 1);
	known = page_mark(&span, CHUNKS_IN_VAIN, page_mark_beside);
	totals = page_totals_here();
	/* A fault that had to wait is retried, and maps its page then: it has been counted already. */
	if (totals && known && !(t->page_faulted >= first && t->page_faulted <= last))
		totals->mapped++;
	return 0;
}

/* A task that reclaims pages for lack of memory may use the last of it (PF_MEMALLOC), and so may kswapd (mm/vmscan.c). */
SEC("tp_btf/mm_filemap_delete_from_page_cache")
int HOLDING_PROG(page_evict, struct folio *folio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct page_totals *totals;
	struct page_span span = {};
	struct inode *inode;
	__u64 index, pages;

	if (!(task->flags & PF_MEMALLOC) || !shared.threads_born || block_after)
		return 0;
	totals = page_totals_here();
	inode = folio->mapping->host;
	if (!totals || (inode->i_mode & S_IFMT) != S_IFREG)
		return 0;
	pages = folio_pages(folio);
	totals->evicted += pages;
	if (!page_is_known(inode))
		return 0;
	index = folio->index;
	page_span_of(&span, inode, index, index + pages);
	page_mark(&span, CHUNKS_AT_ONCE, page_mark_evicted);
	return 0;
}

#endif
