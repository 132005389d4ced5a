//! Which file system a directory is on, as far as it decides how to work there.
//!
//! Only the magic number from `statfs` is used: it is one call, and needs no privilege and no `/proc`.

use std::{fmt, os::fd::AsFd};

use rustix::{fs::fstatfs, io};

/// Families of file systems that want different treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// XFS: parallel along its allocation groups.
    Xfs,
    /// ext2, ext3 and ext4: plainly parallel.
    Ext,
    /// Btrfs: one writer; a second one only gets in the way, because of the tree locks.
    Btrfs,
    /// tmpfs and ramfs: bound by the processors.
    Memory,
    /// overlayfs: each call becomes several on the layers below.
    Overlay,
    /// FUSE, NFS, 9p, CIFS and their like: each call is a round trip.
    Remote,
    /// Anything else.
    Other,
}

impl FileSystem {
    /// The file system that `directory` is on.
    pub fn of(directory: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_magic(fstatfs(directory)?.f_type as u32))
    }

    const fn from_magic(magic: u32) -> Self {
        match magic {
            0x5846_5342 => Self::Xfs,
            0xef53 => Self::Ext,
            0x9123_683e => Self::Btrfs,
            0x0102_1994 | 0x8584_58f6 => Self::Memory,
            0x794c_7630 => Self::Overlay,
            // fuse, nfs, 9p, smb2, cifs, ceph, vboxsf, coda, afs
            0x6573_5546 | 0x6969 | 0x0102_1997 | 0xfe53_4d42 | 0xff53_4d42 | 0x00c3_6400 | 0x786f_4256
            | 0x7375_7245 | 0x6b41_4653 => Self::Remote,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xfs => "xfs",
            Self::Ext => "ext4",
            Self::Btrfs => "btrfs",
            Self::Memory => "tmpfs",
            Self::Overlay => "overlay",
            Self::Remote => "remote",
            Self::Other => "other",
        })
    }
}
