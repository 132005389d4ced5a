//! Which file system a thread waits in, by the names of the kernel's functions in its stack.

use inodyne_model::stack::Stack;

/// What the names of a file system's functions begin with, and what it is called. Journals and what several file systems share (`jbd2`,
/// `iomap`) are left out: the functions of the file system itself come after them.
const PREFIXES: [(&str, &str); 30] = [
    ("9p", "9p"),
    ("afs", "afs"),
    ("bch2", "bcachefs"),
    ("btrfs", "btrfs"),
    ("ceph", "ceph"),
    ("cifs", "cifs"),
    ("erofs", "erofs"),
    ("exfat", "exfat"),
    ("ext2", "ext2"),
    ("ext4", "ext4"),
    ("f2fs", "f2fs"),
    ("fat", "vfat"),
    ("fuse", "fuse"),
    ("gfs2", "gfs2"),
    ("isofs", "iso9660"),
    ("nfs", "nfs"),
    ("nfs3", "nfs"),
    ("nfs4", "nfs"),
    ("nilfs", "nilfs2"),
    ("ntfs", "ntfs3"),
    ("ocfs2", "ocfs2"),
    ("p9", "9p"),
    ("shmem", "tmpfs"),
    ("smb2", "cifs"),
    ("squashfs", "squashfs"),
    ("udf", "udf"),
    ("v9fs", "9p"),
    ("xfs", "xfs"),
    ("zfs", "zfs"),
    ("zpl", "zfs"),
];

/// The file system nearest to the leaf: for an overlay, the one below it, where the thread waits.
pub(crate) fn of(stack: &Stack) -> Option<&'static str> {
    stack.symbols().find_map(|symbol| {
        let (prefix, _) = symbol.trim_start_matches('_').split_once('_')?;
        PREFIXES.iter().find(|(own, _)| *own == prefix).map(|(_, name)| *name)
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample::stack;

    use super::*;

    #[test]
    fn the_functions_tell_whose_they_are() {
        let sync =
            stack(1, "schedule io_schedule bit_wait_io jbd2_log_wait_commit ext4_sync_file vfs_fsync_range do_fsync");
        assert_eq!(of(&sync), Some("ext4"));
        assert_eq!(of(&stack(2, "schedule __xfs_buf_submit ovl_lookup")), Some("xfs"));
        assert_eq!(of(&stack(3, "schedule pipe_read vfs_read")), None);
    }
}
