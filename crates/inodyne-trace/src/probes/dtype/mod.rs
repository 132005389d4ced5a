//! Reads the tables of directory entries and forced look-ups.

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::trace::{Dtype, DtypeDirectory, DtypeFs, ForcedLookup};

use crate::intf::{self, Directory, DirectoryKey, DtypeTotals, ForcedKey, ForcedSum};
use crate::names;

/// Everything known of directory entries and their types.
pub fn read(
    totals: Vec<DtypeTotals>,
    filesystems: Vec<(u32, intf::DtypeFs)>,
    directories: Vec<(DirectoryKey, Directory)>,
    forced: Vec<(ForcedKey, ForcedSum)>,
) -> Dtype {
    let sum = |field: fn(&DtypeTotals) -> u64| totals.iter().map(field).sum();
    let mut dtype = Dtype {
        reads: sum(|row| row.reads),
        entries: sum(|row| row.entries),
        unknown: sum(|row| row.unknown),
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

fn filesystem(device: u32, row: &intf::DtypeFs) -> DtypeFs {
    DtypeFs { fs: intf::text(&row.fs), device: device_name(device), entries: row.entries, unknown: row.unknown }
}

fn directory(key: &DirectoryKey, row: &Directory) -> DtypeDirectory {
    let names = row.name.chunks(intf::PATH_NAME).take(row.names as usize).rev().map(intf::text);
    let path = names.collect::<Vec<_>>().join("/");
    DtypeDirectory {
        path: if row.cut != 0 { format!("…/{path}") } else { format!("/{path}") },
        device: device_name(key.device),
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

/// The kernel's own encoding of a device number: 12 bits of major, 20 of minor (include/linux/kdev_t.h).
fn device_name(device: u32) -> String {
    format!("{}:{}", device >> 20, device & 0xf_ffff)
}
