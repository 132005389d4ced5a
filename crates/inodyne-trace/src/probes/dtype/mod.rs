//! Reads the tables of directory entries and forced look-ups.

mod contract;

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::trace::{Dtype, DtypeDirectory, DtypeFs, ForcedLookup, Trace};

use crate::contract::text;
use crate::devices;
use crate::map::{pairs, per_cpu};
use crate::names;
use crate::options::Options;
use crate::probe::{Probe, Program, Seen};
use crate::skeleton::OpenInodyneSkel;
use contract::{Directory, DirectoryKey, FilesystemSum, ForcedKey, ForcedSum, PATH_NAME, Walk};

/// The probe of directory entries. It has no program of its own: those of system calls call it.
#[derive(Default)]
pub struct Own;

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "types of directory entries"
    }

    fn without(&self) -> &'static str {
        "directories without file types are not found, nor the look-ups that these force"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        &[]
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, _options: &Options, _cpus: usize) -> libbpf_rs::Result<()> {
        object.maps.rodata_data.as_mut().expect("the object has constants").record_types = 1;
        // A program that walks a directory remembers names one after the other, and is not preempted meanwhile. With real-time preemption the
        // kernel refills what it takes memory for them from in a thread (`irq_work` of kernel/bpf/memalloc.c), which comes too late.
        if is_real_time() {
            object.maps.untyped.set_map_flags(0)?;
        }
        Ok(())
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let maps = seen.maps;
        result.dtype = read(
            per_cpu(&maps.dtype_walk)?,
            pairs(&maps.dtype_filesystems)?,
            pairs(&maps.dtype_directories)?,
            pairs(&maps.forced)?,
        );
        Ok(())
    }
}

/// Whether threads can be preempted nearly everywhere in this kernel (`CONFIG_PREEMPT_RT`), which its version then says
/// (init/Makefile, `UTS_VERSION`).
fn is_real_time() -> bool {
    nix::sys::utsname::uname().is_ok_and(|name| name.version().to_string_lossy().contains("PREEMPT_RT"))
}

/// Everything known about directory entries and their types.
fn read(
    totals: Vec<Walk>,
    filesystems: Vec<(u32, FilesystemSum)>,
    directories: Vec<(DirectoryKey, Directory)>,
    forced: Vec<(ForcedKey, ForcedSum)>,
) -> Dtype {
    let sum = |field: fn(&Walk) -> u64| totals.iter().map(field).sum();
    let mut dtype = Dtype {
        reads: sum(|row| row.all_reads),
        entries: sum(|row| row.all_entries),
        unknown: sum(|row| row.all_unknown),
        filesystems: filesystems.iter().map(|(dev, row)| filesystem(*dev, row)).collect(),
        directories: directories.iter().map(|(key, row)| directory(key, row)).collect(),
        forced: forced.iter().filter_map(|(key, sum)| lookup(key, sum)).collect(),
    };
    dtype.filesystems.sort_by(|a, b| (Reverse(a.unknown), &a.device).cmp(&(Reverse(b.unknown), &b.device)));
    dtype
        .directories
        .sort_by(|a, b| (Reverse(a.unknown), &a.path, a.inode).cmp(&(Reverse(b.unknown), &b.path, b.inode)));
    dtype.forced.sort_by(|a, b| (a.thread, &a.syscall, a.directory).cmp(&(b.thread, &b.syscall, b.directory)));
    dtype
}

fn filesystem(device: u32, row: &FilesystemSum) -> DtypeFs {
    DtypeFs { fs: text(&row.fs), device: devices::number(device), entries: row.entries, unknown: row.unknown }
}

fn directory(key: &DirectoryKey, row: &Directory) -> DtypeDirectory {
    let names = row.name.chunks(PATH_NAME).take(row.names as usize).rev().map(text);
    let path = names.collect::<Vec<_>>().join("/");
    DtypeDirectory {
        path: if row.cut != 0 { format!("…/{path}") } else { format!("/{path}") },
        device: devices::number(key.device),
        inode: key.inode,
        entries: row.entries,
        unknown: row.unknown,
    }
}

fn lookup(key: &ForcedKey, sum: &ForcedSum) -> Option<ForcedLookup> {
    Some(ForcedLookup {
        thread: key.thread,
        syscall: names::call(key.call)?,
        directory: key.directory != 0,
        calls: sum.calls,
        wall_ns: Nanos(sum.wall_ns),
        cpu_ns: Nanos(sum.wall_ns.saturating_sub(sum.blocked_ns + sum.ready_ns)),
        blocked_ns: Nanos(sum.blocked_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_walk(to: *mut Walk);
        fn host_plant_dtype_fs(to: *mut FilesystemSum);
        fn host_plant_directory_key(to: *mut DirectoryKey);
        fn host_plant_directory(to: *mut Directory);
        fn host_plant_forced_key(to: *mut ForcedKey);
        fn host_plant_forced_sum(to: *mut ForcedSum);
    }

    #[test]
    fn every_part_of_the_totals_reaches_its_meaning() {
        // As large as two chunks of a buffer: not on the stack of a test.
        let walk: Box<Walk> = Box::new(planted(host_plant_walk));
        let dtype = read(vec![*walk], vec![], vec![], vec![]);
        assert_eq!([dtype.reads, dtype.entries, dtype.unknown], [11, 12, 13]);
        let own = ["buffer", "total", "done", "at", "end", "tgid", "entries", "unknown", "unused", "name", "bytes"];
        every_field_counts("walk", *walk, &own, |walk| read(vec![*walk], vec![], vec![], vec![]));
    }

    #[test]
    fn every_part_of_a_filesystem_reaches_its_meaning() {
        let sum: FilesystemSum = planted(host_plant_dtype_fs);
        let expected = DtypeFs { fs: "ext4".to_owned(), device: "7:3".to_owned(), entries: 22, unknown: 23 };
        assert_eq!(filesystem(7 << 20 | 3, &sum), expected);
        every_field_counts("dtype_fs", sum, &["reads"], |sum| filesystem(7 << 20 | 3, sum));
    }

    #[test]
    fn every_part_of_a_directory_reaches_its_meaning() {
        let (key, row): (DirectoryKey, Directory) = (planted(host_plant_directory_key), planted(host_plant_directory));
        let expected = DtypeDirectory {
            path: "/up/d".to_owned(),
            device: "7:3".to_owned(),
            inode: 31,
            entries: 33,
            unknown: 34,
        };
        assert_eq!(directory(&key, &row), expected);
        every_field_counts("directory_key", key, &["unused"], |key| directory(key, &row));
        every_field_counts("directory", row, &[], |row| directory(&key, row));
    }

    #[test]
    fn every_part_of_a_forced_look_up_reaches_its_meaning() {
        let (key, sum): (ForcedKey, ForcedSum) = (planted(host_plant_forced_key), planted(host_plant_forced_sum));
        let expected = ForcedLookup {
            thread: 41,
            syscall: "newfstatat".to_owned(),
            directory: false,
            calls: 43,
            wall_ns: Nanos(4_400),
            cpu_ns: Nanos(4_400 - 45 - 46),
            blocked_ns: Nanos(45),
        };
        assert_eq!(lookup(&key, &sum), Some(expected));
        every_field_counts("forced_key", key, &["unused"], |key| lookup(key, &sum));
        every_field_counts("forced_sum", sum, &[], |sum| lookup(&key, sum));
    }
}
