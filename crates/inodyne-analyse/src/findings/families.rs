//! Which system calls do similar things, by name. 32-bit calls count as what they do ([`plain_name`]).

pub(super) use inodyne_model::syscall::looks_up;
use inodyne_model::syscall::plain_name;

/// Ask for the attributes of a path.
pub(super) fn stats(call: &str) -> bool {
    matches!(plain_name(call), "stat" | "lstat" | "newfstatat" | "statx")
}

/// Open a file.
pub(super) fn opens(call: &str) -> bool {
    matches!(plain_name(call), "open" | "openat" | "openat2" | "creat")
}

/// Remove a name.
pub(super) fn removes(call: &str) -> bool {
    matches!(plain_name(call), "unlink" | "unlinkat" | "rmdir")
}

/// Read contents.
pub(super) fn reads(call: &str) -> bool {
    matches!(
        plain_name(call),
        "read" | "pread64" | "readv" | "preadv" | "preadv2" | "sendfile" | "splice" | "copy_file_range"
    )
}

/// Write contents.
pub(super) fn writes(call: &str) -> bool {
    matches!(plain_name(call), "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2")
}

/// Wait until something is on a device.
pub(super) fn syncs(call: &str) -> bool {
    matches!(plain_name(call), "fsync" | "fdatasync" | "sync" | "syncfs" | "sync_file_range" | "msync")
}

/// Make, remove or move a name, which locks the directory that it is in.
pub(super) fn changes_names(call: &str) -> bool {
    removes(call)
        || matches!(
            plain_name(call),
            "mkdir"
                | "mkdirat"
                | "mknod"
                | "mknodat"
                | "creat"
                | "rename"
                | "renameat"
                | "renameat2"
                | "link"
                | "linkat"
                | "symlink"
                | "symlinkat"
        )
}

/// Change a file or a name, or hand over what was changed: no cache answers these.
pub(super) fn changes(call: &str) -> bool {
    writes(call)
        || changes_names(call)
        || syncs(call)
        || matches!(
            plain_name(call),
            "close"
                | "chmod"
                | "fchmod"
                | "fchmodat"
                | "fchmodat2"
                | "chown"
                | "lchown"
                | "fchown"
                | "fchownat"
                | "truncate"
                | "ftruncate"
                | "fallocate"
                | "copy_file_range"
                | "utimensat"
                | "setxattr"
                | "lsetxattr"
                | "fsetxattr"
                | "removexattr"
                | "lremovexattr"
                | "fremovexattr"
        )
}

/// Start and end processes, and map programs: what every new process does before and after its work.
pub(super) fn starts_processes(call: &str) -> bool {
    matches!(
        plain_name(call),
        "execve"
            | "execveat"
            | "exit"
            | "exit_group"
            | "clone"
            | "clone3"
            | "fork"
            | "vfork"
            | "mmap"
            | "munmap"
            | "mprotect"
            | "brk"
            | "arch_prctl"
            | "set_tid_address"
            | "set_robust_list"
            | "rseq"
            | "prlimit64"
            | "getrandom"
            | "rt_sigaction"
            | "rt_sigprocmask"
    )
}

/// Work with files and directories, rather than with processes, memory, time or the network.
pub(super) fn concerns_files(call: &str) -> bool {
    looks_up(call)
        || reads(call)
        || changes(call)
        || matches!(
            plain_name(call),
            "getdents64"
                | "getdents"
                | "fstat"
                | "lseek"
                | "fcntl"
                | "flock"
                | "getxattr"
                | "lgetxattr"
                | "fgetxattr"
                | "listxattr"
                | "llistxattr"
                | "flistxattr"
                | "statfs"
                | "fstatfs"
                | "fadvise64"
                | "readahead"
                | "mount"
                | "umount2"
                | "inotify_add_watch"
                | "fanotify_mark"
                | "io_uring_enter"
                | "io_submit"
                | "io_getevents"
        )
}

/// Work with files or with something else, depending on what they are given: cloned files or terminals, mapped files or memory.
pub(super) fn may_concern_files(call: &str) -> bool {
    matches!(plain_name(call), "ioctl" | "mmap" | "munmap" | "madvise" | "exit_group")
}
