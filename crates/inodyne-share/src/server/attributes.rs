//! What a file's attributes are in the kernel's protocol, and who owns the files for a guest.

use std::time::Duration;

use rustix::fs::{Statx, StatxTimestamp, makedev};

use crate::fuse::abi::{Attr, AttrOut, EntryOut};

/// How long a guest may believe what it is told, where it is told of changes. No longer, so that what no message can repair repairs itself.
pub(crate) const WATCHED: Duration = Duration::from_secs(24 * 3600);

/// How long, where it is not.
pub(crate) const UNWATCHED: Duration = Duration::from_secs(1);

/// Who owns the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// All belong to the user that mounts them; files get no other owner and no set-id bits. For hosts that are not root.
    Squash,
    /// Users and groups are the same numbers on both sides, and new files belong to whoever makes them. The host must be root.
    Keep,
}

/// How a guest sees attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Who everything belongs to, if to one.
    pub owner: Option<(u32, u32)>,
    /// The root's device: on other devices the same inode numbers may be in use.
    pub device: u64,
}

impl View {
    /// The attributes of a file.
    pub fn attr(&self, stat: &Statx) -> Attr {
        let (uid, gid) = self.owner.unwrap_or((stat.stx_uid, stat.stx_gid));
        Attr {
            ino: self.inode(stat),
            size: stat.stx_size,
            blocks: stat.stx_blocks,
            atime: seconds(&stat.stx_atime),
            mtime: seconds(&stat.stx_mtime),
            ctime: seconds(&stat.stx_ctime),
            atime_nsec: stat.stx_atime.tv_nsec,
            mtime_nsec: stat.stx_mtime.tv_nsec,
            ctime_nsec: stat.stx_ctime.tv_nsec,
            mode: stat.stx_mode.into(),
            nlink: stat.stx_nlink,
            uid,
            gid,
            // As the kernel's new_encode_dev does; nobody opens a device there, but `ls -l` shows it.
            rdev: (stat.stx_rdev_minor & 0xff) | (stat.stx_rdev_major << 8) | ((stat.stx_rdev_minor & !0xff) << 12),
            blksize: stat.stx_blksize,
            flags: 0,
        }
    }

    /// The inode number that is shown; for another device, one that the root's device does not have.
    pub fn inode(&self, stat: &Statx) -> u64 {
        let device = makedev(stat.stx_dev_major, stat.stx_dev_minor);
        if device == self.device {
            return stat.stx_ino;
        }
        stat.stx_ino ^ (device.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63)
    }
}

/// The answer to a request for a name.
pub(crate) fn entry(node: u64, attr: Attr, valid: Duration) -> EntryOut {
    EntryOut {
        node,
        // Numbers of nodes are never used again.
        generation: 0,
        entry_valid: valid.as_secs(),
        attr_valid: valid.as_secs(),
        entry_valid_nsec: valid.subsec_nanos(),
        attr_valid_nsec: valid.subsec_nanos(),
        attr,
    }
}

/// The answer to a request for attributes.
pub(crate) fn attributes(attr: Attr, valid: Duration) -> AttrOut {
    AttrOut { attr_valid: valid.as_secs(), attr_valid_nsec: valid.subsec_nanos(), dummy: 0, attr }
}

fn seconds(time: &StatxTimestamp) -> u64 {
    time.tv_sec as u64
}
