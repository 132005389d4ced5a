//! Allocation groups of XFS: which part of the disk an inode belongs to.
//!
//! XFS splits a disk into groups that work independently; an inode's number contains its group. Unlinking takes a lock
//! of the group, so removers that keep to different groups never wait for each other. The sizes come from the
//! geometry `ioctl`, which needs no privilege.

use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

/// `XFS_IOC_FSGEOMETRY_V1`: the first fields suffice here, and every kernel answers it.
const GEOMETRY: Opcode = opcode::read::<Geometry>(b'X', 100);

/// `struct xfs_fsop_geom_v1`.
#[repr(C)]
struct Geometry {
    block_bytes: u32,
    _realtime_extent: u32,
    group_blocks: u32,
    group_count: u32,
    _log_blocks: u32,
    _sector_bytes: u32,
    inode_bytes: u32,
    _rest: [u32; 21],
}

/// How inode numbers map to groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    count: usize,
    /// Bits of an inode number below its group.
    shift: u32,
}

impl Groups {
    /// The groups of the file system that `directory` is on, if it has any.
    pub fn of(directory: impl AsFd) -> Option<Self> {
        // SAFETY: the opcode encodes the size of `Geometry`, which is what the kernel writes, all of it plain numbers.
        let geometry = unsafe { ioctl(directory, Getter::<GEOMETRY, Geometry>::new()) }.ok()?;
        Self::new(&geometry)
    }

    fn new(geometry: &Geometry) -> Option<Self> {
        let inodes_per_block = geometry.block_bytes.checked_div(geometry.inode_bytes)?;
        let shift = log2_up(geometry.group_blocks) + log2_up(inodes_per_block);
        (geometry.group_count > 0 && shift < 64).then_some(Self { count: geometry.group_count as usize, shift })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The group of an inode.
    pub fn group(&self, inode: u64) -> usize {
        (inode >> self.shift) as usize
    }
}

fn log2_up(value: u32) -> u32 {
    value.max(1).next_power_of_two().trailing_zeros()
}
