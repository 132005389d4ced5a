//! Reads what the command brought into the page cache, and what became of it.

mod contract;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::ledger::PAGE_FAULT;
use inodyne_model::page_cache::{Asked, Brought, Contents, FILES_KEPT, FilePages, PageCache, Used};
use inodyne_model::trace::Trace;

use crate::kernel::page_bytes;
use crate::contract::{global, text};
use crate::map::{pairs, per_cpu};
use crate::probe::{Point, Probe, Program, Seen};
use crate::{devices, names};
use contract::{Chunk, ChunkKey, Key, PAGES_OF_METADATA, Row, Totals};

/// The probe of the page cache.
#[derive(Default)]
pub struct Own;

const PROGRAMS: &[Program] = &[
    Program::at("page_brought", "mm_filemap_add_to_page_cache").of_detail(),
    Program::at("page_evict", "mm_filemap_delete_from_page_cache").of_detail(),
    ASKED,
    Program::new("page_fault", Point::TracepointOfPages("mm_filemap_fault")).of_detail(),
    Program::new("page_map", Point::TracepointOfPages("mm_filemap_map_pages")).of_detail(),
];

/// From Linux 6.12 on, together with the two after it.
const ASKED: Program = Program::new("page_read", Point::TracepointOfPages("mm_filemap_get_pages")).of_detail();


impl Probe for Own {
    fn feature(&self) -> &'static str {
        "the page cache"
    }

    fn without(&self) -> &'static str {
        "it is not known what was brought into memory, and what of it was asked for"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        PROGRAMS
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let rows: Vec<(Key, Row)> = pairs(&seen.maps.page_cache_rows)?;
        let bss = seen.maps.bss_data.as_ref().expect("the programs have variables");
        let chunks: Vec<(ChunkKey, Chunk)> = pairs(&seen.maps.page_chunks)?;
        let totals = per_cpu(&seen.maps.page_totals)?;
        let unseen = PROGRAMS.iter().filter_map(|program| seen.skipped.get(program.name)).sum();
        let cache = read(&rows, &chunks, &totals, global(&bss.pages_not_kept), ASKED.is_there());
        result.page_cache = Some(PageCache { unseen, ..cache });
        Ok(())
    }
}

/// All of it, most bytes first.
fn read(
    rows: &[(Key, Row)],
    chunks: &[(ChunkKey, Chunk)],
    totals: &[Totals],
    not_kept: u64,
    shows_asked: bool,
) -> PageCache {
    let mut brought: Vec<Brought> = rows.iter().map(|(key, row)| row_of(key, row)).collect();
    brought.sort_by(|a, b| (Reverse(a.bytes), &a.comm, &a.syscall).cmp(&(Reverse(b.bytes), &b.comm, &b.syscall)));
    let sum = |of: fn(&Totals) -> u64| totals.iter().map(of).sum::<u64>();
    PageCache {
        brought,
        asked: shows_asked.then(|| {
            let files = files(chunks);
            let mut of_brought = Used::default();
            files.iter().for_each(|file| of_brought.add(&file.used));
            let files = files.into_iter().take(FILES_KEPT).collect();
            Asked { read_bytes: sum(|one| one.read) * page_bytes(), faults: sum(|one| one.faulted), mapped: sum(|one| one.mapped), of_brought, files }
        }),
        evicted_bytes: sum(|one| one.evicted) * page_bytes(),
        evicted_own_bytes: sum(|one| one.evicted_own) * page_bytes(),
        not_followed_bytes: not_kept * page_bytes(),
        unseen: 0,
    }
}

fn row_of(key: &Key, row: &Row) -> Brought {
    let device = devices::number(key.device);
    Brought {
        name: devices::name(&device),
        device,
        comm: text(&key.comm),
        syscall: names::call(key.call).unwrap_or_else(|| PAGE_FAULT.to_owned()),
        contents: if key.contents == PAGES_OF_METADATA { Contents::Metadata } else { Contents::Files },
        bytes: row.brought * page_bytes(),
        again_bytes: row.again * page_bytes(),
    }
}

/// The files whose pages were brought in, those with the most first.
fn files(chunks: &[(ChunkKey, Chunk)]) -> Vec<FilePages> {
    let mut by_file = BTreeMap::<(u32, u64, u32), (String, Used)>::new();
    for (key, chunk) in chunks {
        let (name, used) = by_file.entry((key.device, key.inode, key.generation)).or_default();
        if name.is_empty() {
            *name = text(&chunk.name);
        }
        used.add(&used_of(chunk));
    }
    let file = |((device, inode, _), (name, used))| FilePages { device: devices::number(device), inode, name, used };
    let mut files: Vec<FilePages> = by_file.into_iter().map(file).collect();
    files.retain(|file| file.used.distinct_bytes > 0);
    files.sort_by_key(|file| Reverse(file.used.distinct_bytes));
    files
}

fn used_of(chunk: &Chunk) -> Used {
    let bytes = |pages: u64| u64::from(pages.count_ones()) * page_bytes();
    Used {
        distinct_bytes: bytes(chunk.brought),
        used_bytes: bytes(chunk.brought & chunk.asked),
        beside_bytes: bytes(chunk.brought & chunk.beside & !chunk.asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_page_cache_key(to: *mut Key);
        fn host_plant_page_cache_row(to: *mut Row);
        fn host_plant_page_chunk_key(to: *mut ChunkKey);
        fn host_plant_page_chunk(to: *mut Chunk);
        fn host_plant_page_totals(to: *mut Totals);
    }

    #[test]
    fn every_part_of_the_page_cache_reaches_its_meaning() {
        let (key, row): (Key, Row) = (planted(host_plant_page_cache_key), planted(host_plant_page_cache_row));
        let (chunk_key, chunk): (ChunkKey, Chunk) = (planted(host_plant_page_chunk_key), planted(host_plant_page_chunk));
        let totals: Totals = planted(host_plant_page_totals);
        let used = Used { distinct_bytes: 8 * page_bytes(), used_bytes: page_bytes(), beside_bytes: 4 * page_bytes() };
        let expected = PageCache {
            brought: vec![Brought {
                device: "259:2".to_owned(),
                name: "259:2".to_owned(),
                comm: "planted".to_owned(),
                syscall: names::call(0).expect("a call"),
                contents: Contents::Metadata,
                bytes: 702 * page_bytes(),
                again_bytes: 703 * page_bytes(),
            }],
            asked: Some(Asked {
                read_bytes: 721 * page_bytes(),
                faults: 722,
                mapped: 723,
                of_brought: used,
                files: vec![FilePages { device: "259:2".to_owned(), inode: 711, name: "planted".to_owned(), used }],
            }),
            evicted_bytes: 724 * page_bytes(),
            evicted_own_bytes: 725 * page_bytes(),
            not_followed_bytes: 731 * page_bytes(),
            unseen: 0,
        };
        let all = |key: &Key, row: &Row, chunk_key: &ChunkKey, chunk: &Chunk, totals: &Totals| {
            read(&[(*key, *row)], &[(*chunk_key, *chunk)], &[*totals], 731, true)
        };
        assert_eq!(all(&key, &row, &chunk_key, &chunk, &totals), expected);
        every_field_counts("page_cache_key", key, &["unused"], |key| all(key, &row, &chunk_key, &chunk, &totals));
        every_field_counts("page_cache_row", row, &[], |row| all(&key, row, &chunk_key, &chunk, &totals));
        // Which chunk of a file it is, and which file had this number before, only tells them apart.
        every_field_counts("page_chunk_key", chunk_key, &["chunk", "generation"], |chunk_key| {
            all(&key, &row, chunk_key, &chunk, &totals)
        });
        every_field_counts("page_chunk", chunk, &[], |chunk| all(&key, &row, &chunk_key, chunk, &totals));
        every_field_counts("page_totals", totals, &[], |totals| all(&key, &row, &chunk_key, &chunk, totals));
    }

    #[test]
    fn files_of_one_number_are_told_apart_and_chunks_of_a_file_are_one() {
        let (key, chunk): (ChunkKey, Chunk) = (planted(host_plant_page_chunk_key), planted(host_plant_page_chunk));
        let second = ChunkKey { chunk: key.chunk + 1, ..key };
        let another = ChunkKey { generation: key.generation + 1, ..key };
        let found = files(&[(key, chunk), (second, chunk), (another, chunk)]);
        assert_eq!(found.iter().map(|file| file.used.distinct_bytes).collect::<Vec<_>>(), [16 * page_bytes(), 8 * page_bytes()]);
    }

    #[test]
    fn where_nobody_sees_what_is_asked_for_nothing_is_said_of_it() {
        let (key, row): (Key, Row) = (planted(host_plant_page_cache_key), planted(host_plant_page_cache_row));
        let found = read(&[(key, row)], &[], &[], 0, false);
        assert_eq!((found.asked, found.brought.len()), (None, 1));
    }
}
