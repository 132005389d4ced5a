//! The kinds of file system that can be made, and what each needs: one table.
//!
//! A kind is a name that the user writes and, except for `bind` and `share`, that the kernel mounts; a program that formats or packs;
//! and the options that it takes. What an option's value means is the business of [`crate::PlaceSpec`].

use std::fmt;

use crate::{Size, key::Key};

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
    Overlay,
    Bind,
    Fuse,
    Share,
    Squashfs,
    Erofs,
}

/// How a kind with a device is formatted.
pub(crate) struct Mkfs {
    /// The program.
    pub program: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
    /// What it is always given: no questions, no chatter.
    pub always: &'static [&'static str],
    /// An extended option (`-E`) that avoids needless writes to a new image, unless the program is too old to know it.
    pub sparing: Option<&'static str>,
    /// Below this it refuses.
    pub least: Size,
    /// In which order it takes its arguments.
    pub order: Order,
}

/// The order of a program's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Options, then the device to format.
    Device,
    /// The directory to pack, the image, then options.
    DirectoryImageOptions,
    /// Options, the image, then the directory to pack.
    OptionsImageDirectory,
}

const fn mke2fs(program: &'static str) -> Mkfs {
    Mkfs {
        program,
        package: "e2fsprogs",
        always: &["-q", "-F"],
        // A new image reads as zeros. Without this the kernel would go on zeroing inode tables during the runs.
        sparing: Some("assume_storage_prezeroed=1"),
        least: Size::from_bytes(64 << 10),
        order: Order::Device,
    }
}

const EXT2: Mkfs = mke2fs("mkfs.ext2");
const EXT3: Mkfs = mke2fs("mkfs.ext3");
const EXT4: Mkfs = mke2fs("mkfs.ext4");
const XFS: Mkfs = Mkfs {
    program: "mkfs.xfs",
    package: "xfsprogs",
    always: &["-q", "-f"],
    sparing: None,
    least: Size::from_mib(300),
    order: Order::Device,
};
const BTRFS: Mkfs = Mkfs { program: "mkfs.btrfs", package: "btrfs-progs", least: Size::from_mib(109), ..XFS };
const SQUASHFS: Mkfs = Mkfs {
    program: "mksquashfs",
    package: "squashfs-tools",
    always: &["-noappend", "-no-recovery", "-no-progress", "-quiet"],
    sparing: None,
    least: Size::from_bytes(0),
    order: Order::DirectoryImageOptions,
};
const EROFS: Mkfs = Mkfs {
    program: "mkfs.erofs",
    package: "erofs-utils",
    // Times as exact as in the other places.
    always: &["--quiet", "--preserve-mtime"],
    order: Order::OptionsImageDirectory,
    ..SQUASHFS
};

impl Kind {
    /// Every kind, in the order in which they are listed to users.
    pub const ALL: [Self; 12] = [
        Self::Ext2,
        Self::Ext3,
        Self::Ext4,
        Self::Xfs,
        Self::Btrfs,
        Self::Tmpfs,
        Self::Overlay,
        Self::Bind,
        Self::Fuse,
        Self::Share,
        Self::Squashfs,
        Self::Erofs,
    ];

    /// The name that users write and the kernel knows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
            Self::Overlay => "overlay",
            Self::Bind => "bind",
            Self::Fuse => "fuse",
            Self::Share => "share",
            Self::Squashfs => "squashfs",
            Self::Erofs => "erofs",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// All names, for messages.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// How it is formatted or packed; `None` where there is no device of its own.
    pub(crate) const fn mkfs(self) -> Option<&'static Mkfs> {
        match self {
            Self::Ext2 => Some(&EXT2),
            Self::Ext3 => Some(&EXT3),
            Self::Ext4 => Some(&EXT4),
            Self::Xfs => Some(&XFS),
            Self::Btrfs => Some(&BTRFS),
            Self::Squashfs => Some(&SQUASHFS),
            Self::Erofs => Some(&EROFS),
            Self::Tmpfs | Self::Overlay | Self::Bind | Self::Fuse | Self::Share => None,
        }
    }

    /// Whether it has a block device of its own.
    pub(crate) const fn has_device(self) -> bool {
        self.mkfs().is_some()
    }

    /// Whether the files are on the place itself, where they can be written one by one: what an overlay's upper
    /// directory needs.
    pub(crate) const fn is_writable(self) -> bool {
        !self.shows() && !matches!(self, Self::Overlay | Self::Squashfs | Self::Erofs)
    }

    /// Whether it only shows another place, which is written right after its name: `bind:DIR`.
    pub(crate) const fn shows(self) -> bool {
        matches!(self, Self::Bind | Self::Fuse | Self::Share)
    }

    /// The options that it takes, in the order in which they are written out.
    pub(crate) const fn keys(self) -> &'static [Key] {
        match self {
            Self::Ext2 | Self::Ext3 | Self::Ext4 | Self::Xfs | Self::Btrfs => {
                const KEYS: [Key; 9] = [
                    Key::Size,
                    Key::Mkfs,
                    Key::Mount,
                    Key::Age,
                    Key::Full,
                    Key::Delay,
                    Key::Bandwidth,
                    Key::Iops,
                    Key::Set,
                ];
                &KEYS
            }
            Self::Tmpfs => &[Key::Size, Key::Mount, Key::Set],
            Self::Overlay => &[Key::Lower, Key::Upper, Key::Layers, Key::Mount, Key::Set],
            Self::Bind | Self::Fuse => &[Key::Mount, Key::Set],
            Self::Share => &[Key::WithholdTypes, Key::Delay, Key::Mount, Key::Set],
            Self::Squashfs | Self::Erofs => &[Key::Mkfs, Key::Mount, Key::Delay, Key::Bandwidth, Key::Iops, Key::Set],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
