//! Reads the table of files that were used.

mod contract;

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::files::{FileUse, Files};
use inodyne_model::trace::Trace;

use crate::contract::{global, path_end, text};
use crate::map::pairs;
use crate::options::Options;
use crate::probe::{Probe, Program, Seen};
use crate::skeleton::OpenInodyneSkel;
use contract::{Key, Sum, USED_LIST, USED_MAP, USED_OPEN, USED_OTHERWISE, USED_READ, USED_SYNC, USED_WRITE};

/// The probe of files. It has no program of its own: that of system calls calls it.
#[derive(Default)]
pub struct Own;

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "files"
    }

    fn without(&self) -> &'static str {
        "it is not counted which files are used"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        &[]
    }

    fn is_wanted(&self, options: &Options) -> bool {
        options.max_files > 0
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, options: &Options, _cpus: usize) -> libbpf_rs::Result<()> {
        let constants = object.maps.rodata_data.as_mut().expect("the object has constants");
        constants.record_files = options.max_files;
        object.maps.files.set_max_entries(options.max_files)
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let variables = seen.maps.bss_data.as_ref().expect("the object has global variables");
        let rows: Vec<(Key, Sum)> = pairs(&seen.maps.files)?;
        let mut used: Vec<FileUse> = rows.iter().filter_map(|(_, sum)| file(sum)).collect();
        used.sort_by(|a, b| (Reverse(a.wall_ns), &a.path, &a.comm).cmp(&(Reverse(b.wall_ns), &b.path, &b.comm)));
        result.files = Some(Files { used, not_kept: global(&variables.files_not_kept) });
        Ok(())
    }
}

fn file(sum: &Sum) -> Option<FileUse> {
    let calls = |which: usize| sum.calls[which];
    Some(FileUse {
        path: path_end(&sum.path, sum.length, sum.cut != 0)?,
        comm: text(&sum.comm),
        is_directory: sum.directory != 0,
        opens: calls(USED_OPEN),
        reads: calls(USED_READ),
        read_bytes: sum.read_bytes,
        writes: calls(USED_WRITE),
        written_bytes: sum.written_bytes,
        lists: calls(USED_LIST),
        syncs: calls(USED_SYNC),
        maps: calls(USED_MAP),
        others: calls(USED_OTHERWISE),
        wall_ns: Nanos(sum.wall_ns),
        blocked_ns: Nanos(sum.blocked_ns),
        size: sum.size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_file_sum(to: *mut Sum);
    }

    #[test]
    fn every_part_of_a_file_reaches_its_meaning() {
        let sum: Sum = planted(host_plant_file_sum);
        let expected = FileUse {
            path: "…/a/b".to_owned(),
            comm: "tar".to_owned(),
            is_directory: false,
            others: 951,
            opens: 952,
            reads: 953,
            writes: 954,
            lists: 955,
            syncs: 956,
            maps: 957,
            read_bytes: 958,
            written_bytes: 959,
            wall_ns: Nanos(960),
            blocked_ns: Nanos(961),
            size: 962,
        };
        assert_eq!(file(&sum), Some(expected));
        every_field_counts("file_sum", sum, &["unused"], file);
    }
}
