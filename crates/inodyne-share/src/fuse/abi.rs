//! The structures and numbers of the kernel's FUSE protocol, as `include/uapi/linux/fuse.h` lays them out (7.38, and later
//! additions where noted). Only what this crate uses. Nothing here decides anything.
//!
//! Both ends run on little-endian 64-bit machines; the handshake refuses others.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Declares structures that are read from bytes and written as bytes.
macro_rules! layouts {
    ($($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
            #[repr(C)]
            pub(crate) struct $name { $($(#[$note])* pub $field: $kind,)* }
        )*
    };
}

layouts! {
    /// Before every request.
    InHeader {
        /// Bytes, including this header.
        len: u32, opcode: u32, unique: u64, node: u64, uid: u32, gid: u32, pid: u32,
        /// Units of 8 bytes.
        extensions: u16, padding: u16,
    }
    /// Before every reply; in a notification, `unique` is 0 and `error` is its code.
    OutHeader { len: u32, error: i32, unique: u64, }
    Attr {
        ino: u64, size: u64, blocks: u64, atime: u64, mtime: u64, ctime: u64,
        atime_nsec: u32, mtime_nsec: u32, ctime_nsec: u32,
        mode: u32, nlink: u32, uid: u32, gid: u32, rdev: u32, blksize: u32, flags: u32,
    }
    EntryOut {
        node: u64, generation: u64, entry_valid: u64, attr_valid: u64,
        entry_valid_nsec: u32, attr_valid_nsec: u32, attr: Attr,
    }
    AttrOut { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: Attr, }
    InitIn { major: u32, minor: u32, max_readahead: u32, flags: u32, flags2: u32, unused: [u32; 11], }
    /// What kernels before 7.36 send.
    OldInitIn { major: u32, minor: u32, max_readahead: u32, flags: u32, }
    InitOut {
        major: u32, minor: u32, max_readahead: u32, flags: u32, max_background: u16, congestion_threshold: u16,
        max_write: u32, time_gran: u32, max_pages: u16, map_alignment: u16, flags2: u32, unused: [u32; 7],
    }
    ForgetIn { lookups: u64, }
    ForgetOne { node: u64, lookups: u64, }
    BatchForgetIn { count: u32, dummy: u32, }
    GetAttrIn { flags: u32, dummy: u32, fh: u64, }
    SetAttrIn {
        valid: u32, padding: u32, fh: u64, size: u64, lock_owner: u64, atime: u64, mtime: u64, ctime: u64,
        atime_nsec: u32, mtime_nsec: u32, ctime_nsec: u32, mode: u32, unused4: u32, uid: u32, gid: u32, unused5: u32,
    }
    MkNodIn { mode: u32, rdev: u32, umask: u32, padding: u32, }
    MkDirIn { mode: u32, umask: u32, }
    RenameIn { new_dir: u64, }
    Rename2In { new_dir: u64, flags: u32, padding: u32, }
    LinkIn { old_node: u64, }
    OpenIn { flags: u32, open_flags: u32, }
    CreateIn { flags: u32, mode: u32, umask: u32, open_flags: u32, }
    OpenOut { fh: u64, open_flags: u32, padding: u32, }
    ReadIn { fh: u64, offset: u64, size: u32, read_flags: u32, lock_owner: u64, flags: u32, padding: u32, }
    WriteIn { fh: u64, offset: u64, size: u32, write_flags: u32, lock_owner: u64, flags: u32, padding: u32, }
    WriteOut { size: u32, padding: u32, }
    ReleaseIn { fh: u64, flags: u32, release_flags: u32, lock_owner: u64, }
    FlushIn { fh: u64, unused: u32, padding: u32, lock_owner: u64, }
    FsyncIn { fh: u64, flags: u32, padding: u32, }
    SetXattrIn { size: u32, flags: u32, }
    GetXattrIn { size: u32, padding: u32, }
    GetXattrOut { size: u32, padding: u32, }
    FileLock { start: u64, end: u64, kind: u32, pid: u32, }
    LkIn { fh: u64, owner: u64, lock: FileLock, flags: u32, padding: u32, }
    StatFsOut {
        blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64,
        bsize: u32, namelen: u32, frsize: u32, padding: u32, spare: [u32; 6],
    }
    InterruptIn { unique: u64, }
    FallocateIn { fh: u64, offset: u64, length: u64, mode: u32, padding: u32, }
    LseekIn { fh: u64, offset: u64, whence: u32, padding: u32, }
    LseekOut { offset: u64, }
    CopyFileRangeIn { fh_in: u64, off_in: u64, node_out: u64, fh_out: u64, off_out: u64, len: u64, flags: u64, }
    /// Before each name in the answer to a READDIR; in that to a READDIRPLUS, an `EntryOut` comes before it.
    Dirent { ino: u64, off: u64, namelen: u32, kind: u32, }
    InvalInodeOut { node: u64, off: i64, len: i64, }
    InvalEntryOut { parent: u64, namelen: u32, flags: u32, }
}

/// The version of the protocol that is spoken.
pub(crate) const MAJOR: u32 = 7;
/// The newest minor version whose structures are above.
pub(crate) const MINOR: u32 = 38;

/// The minor version that brought [`notify::INC_EPOCH`].
pub(crate) const EPOCH_SINCE: u32 = 44;

/// The number of the root directory.
pub(crate) const ROOT: u64 = 1;

/// Requests by number, with the names that reports use.
macro_rules! opcodes {
    ($($name:ident = $number:literal $word:literal,)*) => {
        /// Numbers of requests.
        pub(crate) mod opcode {
            $(pub(crate) const $name: u32 = $number;)*
        }

        /// What reports call a request, in the order of their numbers.
        pub(crate) const REQUESTS: &[(u32, &str)] = &[$(($number, $word),)*];
    };
}

opcodes! {
    LOOKUP = 1 "lookup", FORGET = 2 "forget", GETATTR = 3 "getattr", SETATTR = 4 "setattr", READLINK = 5 "readlink",
    SYMLINK = 6 "symlink", MKNOD = 8 "mknod", MKDIR = 9 "mkdir", UNLINK = 10 "unlink", RMDIR = 11 "rmdir",
    RENAME = 12 "rename", LINK = 13 "link", OPEN = 14 "open", READ = 15 "read", WRITE = 16 "write", STATFS = 17 "statfs",
    RELEASE = 18 "release", FSYNC = 20 "fsync", SETXATTR = 21 "setxattr", GETXATTR = 22 "getxattr",
    LISTXATTR = 23 "listxattr", REMOVEXATTR = 24 "removexattr", FLUSH = 25 "flush", INIT = 26 "init",
    OPENDIR = 27 "opendir", READDIR = 28 "readdir", RELEASEDIR = 29 "releasedir", FSYNCDIR = 30 "fsyncdir", GETLK = 31 "getlk", SETLK = 32 "setlk",
    SETLKW = 33 "setlkw", CREATE = 35 "create", INTERRUPT = 36 "interrupt", DESTROY = 38 "destroy", IOCTL = 39 "ioctl",
    BATCH_FORGET = 42 "batch_forget", FALLOCATE = 43 "fallocate", READDIRPLUS = 44 "readdirplus", RENAME2 = 45 "rename2",
    LSEEK = 46 "lseek", COPY_FILE_RANGE = 47 "copy_file_range", SYNCFS = 50 "syncfs",
}

/// Whether such a request makes a name in its node, a directory. (A rename is about two.)
pub(crate) fn makes_a_name(number: u32) -> bool {
    matches!(number, opcode::CREATE | opcode::MKNOD | opcode::MKDIR | opcode::SYMLINK | opcode::LINK)
}

/// Whether it makes or removes one.
pub(crate) fn changes_a_name(number: u32) -> bool {
    makes_a_name(number) || matches!(number, opcode::UNLINK | opcode::RMDIR)
}

/// Of a rename, the directory to which it moves the name, with which both forms of the request begin (`fuse_rename_in`, `fuse_rename2_in`).
pub(crate) fn renames_into(body: &[u8]) -> Option<u64> {
    body.first_chunk().map(|new| u64::from_le_bytes(*new))
}

/// Codes of notifications.
pub(crate) mod notify {
    pub(crate) const INVAL_INODE: i32 = 2;
    pub(crate) const INVAL_ENTRY: i32 = 3;
    /// All names at once; since 7.44 (Linux 6.16).
    pub(crate) const INC_EPOCH: i32 = 8;
}

/// What both sides may say in INIT.
pub(crate) mod init {
    pub(crate) const ASYNC_READ: u64 = 1 << 0;
    pub(crate) const POSIX_LOCKS: u64 = 1 << 1;
    pub(crate) const BIG_WRITES: u64 = 1 << 5;
    pub(crate) const FLOCK_LOCKS: u64 = 1 << 10;
    pub(crate) const AUTO_INVAL_DATA: u64 = 1 << 12;
    pub(crate) const DO_READDIRPLUS: u64 = 1 << 13;
    pub(crate) const ASYNC_DIO: u64 = 1 << 15;
    pub(crate) const PARALLEL_DIROPS: u64 = 1 << 18;
    pub(crate) const MAX_PAGES: u64 = 1 << 22;
    pub(crate) const CACHE_SYMLINKS: u64 = 1 << 23;
    pub(crate) const NO_OPENDIR_SUPPORT: u64 = 1 << 24;
    pub(crate) const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    pub(crate) const INIT_EXT: u64 = 1 << 30;
}

/// Which fields of [`SetAttrIn`] count.
pub(crate) mod set {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const FH: u32 = 1 << 6;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
    pub(crate) const KILL_SUIDGID: u32 = 1 << 11;
}

/// [`GetAttrIn::flags`]: the handle counts.
pub(crate) const GETATTR_FH: u32 = 1 << 0;
/// [`OpenOut::open_flags`]: what is cached of the file stays valid.
pub(crate) const FOPEN_KEEP_CACHE: u32 = 1 << 1;
/// [`OpenOut::open_flags`]: closing it sends no request, except for the last time.
pub(crate) const FOPEN_NOFLUSH: u32 = 1 << 5;
/// [`OpenIn::open_flags`]: opening truncates, so set-id bits go.
pub(crate) const OPEN_KILL_SUIDGID: u32 = 1 << 0;
/// [`WriteIn::write_flags`]: writing clears the set-id bits.
pub(crate) const WRITE_KILL_SUIDGID: u32 = 1 << 2;
/// [`FsyncIn::flags`]: data only.
pub(crate) const FSYNC_FDATASYNC: u32 = 1 << 0;
/// [`LkIn::flags`]: a flock(2) lock.
pub(crate) const LK_FLOCK: u32 = 1 << 0;

/// The length to which a directory entry is padded.
pub(crate) const fn padded(length: usize) -> usize {
    length.next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        let sizes = [
            (size_of::<InHeader>(), 40),
            (size_of::<OutHeader>(), 16),
            (size_of::<Attr>(), 88),
            (size_of::<EntryOut>(), 128),
            (size_of::<AttrOut>(), 104),
            (size_of::<InitIn>(), 64),
            (size_of::<OldInitIn>(), 16),
            (size_of::<InitOut>(), 64),
            (size_of::<SetAttrIn>(), 88),
            (size_of::<ReadIn>(), 40),
            (size_of::<WriteIn>(), 40),
            (size_of::<LkIn>(), 48),
            (size_of::<StatFsOut>(), 80),
            (size_of::<CopyFileRangeIn>(), 56),
            (size_of::<Dirent>(), 24),
        ];
        for (index, (is, should)) in sizes.into_iter().enumerate() {
            assert_eq!(is, should, "structure {index} of the list");
        }
    }
}
