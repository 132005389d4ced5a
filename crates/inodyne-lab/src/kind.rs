//! The kinds of file system that can be made, and what each needs: one table.
//!
//! A kind is a name that the user writes, that the kernel mounts, and a program that formats. Which options a user
//! may give is the business of [`crate::PlaceSpec`], not of this table.

use std::fmt;

use crate::Size;

/// A file system that can be made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Ext2,
    Ext3,
    Ext4,
    Xfs,
    Btrfs,
    Tmpfs,
}

/// How a kind with a device is formatted.
pub(crate) struct Mkfs {
    /// The program.
    pub program: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
    /// What it is always given: no questions, no chatter.
    pub always: &'static [&'static str],
    /// An extended option (`-E`) that spares needless writing to a new image, unless the program is too old to know it.
    pub sparing: Option<&'static str>,
    /// Below this it refuses.
    pub least: Size,
}

const fn mke2fs(program: &'static str) -> Mkfs {
    Mkfs {
        program,
        package: "e2fsprogs",
        always: &["-q", "-F"],
        // A new image reads as zeros. Without this the kernel would go on zeroing inode tables during the runs.
        sparing: Some("assume_storage_prezeroed=1"),
        least: Size::from_bytes(64 << 10),
    }
}

const EXT2: Mkfs = mke2fs("mkfs.ext2");
const EXT3: Mkfs = mke2fs("mkfs.ext3");
const EXT4: Mkfs = mke2fs("mkfs.ext4");
const XFS: Mkfs =
    Mkfs { program: "mkfs.xfs", package: "xfsprogs", always: &["-q", "-f"], sparing: None, least: Size::from_mib(300) };
const BTRFS: Mkfs = Mkfs {
    program: "mkfs.btrfs",
    package: "btrfs-progs",
    always: &["-q", "-f"],
    sparing: None,
    least: Size::from_mib(109),
};

impl Kind {
    /// Every kind, in the order in which they are listed to users.
    pub const ALL: [Self; 6] = [Self::Ext2, Self::Ext3, Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    /// The name that users write and the kernel knows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// All names, for messages.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// How it is formatted; `None` where there is no device.
    pub(crate) const fn mkfs(self) -> Option<&'static Mkfs> {
        match self {
            Self::Ext2 => Some(&EXT2),
            Self::Ext3 => Some(&EXT3),
            Self::Ext4 => Some(&EXT4),
            Self::Xfs => Some(&XFS),
            Self::Btrfs => Some(&BTRFS),
            Self::Tmpfs => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
