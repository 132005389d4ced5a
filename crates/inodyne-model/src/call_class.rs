//! Classes of system calls by what they are about, as in `strace -e trace=%file`.

use std::fmt;
use std::str::FromStr;

use crate::syscall::plain_name;

/// What a system call is about. A call may belong to several classes: `openat` takes a path and returns a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallClass {
    /// It takes a path.
    File,
    /// It takes or returns a descriptor.
    Desc,
    /// It is about sockets.
    Network,
    /// It creates processes and threads, ends them, or waits for them.
    Process,
    /// It maps memory.
    Memory,
    /// It is about signals.
    Signal,
    /// It is about System V semaphores, queues and memory.
    Ipc,
}

impl CallClass {
    /// All classes.
    pub const ALL: [CallClass; 7] = [
        CallClass::File,
        CallClass::Desc,
        CallClass::Network,
        CallClass::Process,
        CallClass::Memory,
        CallClass::Signal,
        CallClass::Ipc,
    ];

    /// The name that strace uses.
    pub fn as_str(self) -> &'static str {
        match self {
            CallClass::File => "file",
            CallClass::Desc => "desc",
            CallClass::Network => "network",
            CallClass::Process => "process",
            CallClass::Memory => "memory",
            CallClass::Signal => "signal",
            CallClass::Ipc => "ipc",
        }
    }

    /// What its calls do: `that take a path`.
    pub fn in_words(self) -> &'static str {
        match self {
            CallClass::File => "that take a path",
            CallClass::Desc => "on file descriptors",
            CallClass::Network => "on sockets",
            CallClass::Process => "on processes",
            CallClass::Memory => "on memory",
            CallClass::Signal => "on signals",
            CallClass::Ipc => "of System V IPC",
        }
    }

    /// Whether a call of this name belongs to the class.
    pub fn has(self, call: &str) -> bool {
        self.calls().split_ascii_whitespace().any(|name| name == plain_name(call))
    }

    fn calls(self) -> &'static str {
        match self {
            CallClass::File => {
                "access acct chdir chmod chown chroot creat execve execveat faccessat faccessat2 fanotify_mark fchmodat \
                 fchmodat2 fchownat file_getattr file_setattr fspick futimesat getcwd getxattr getxattrat \
                 inotify_add_watch lchown lgetxattr link linkat listxattr listxattrat llistxattr lremovexattr lsetxattr \
                 lstat mkdir mkdirat mknod mknodat mount mount_setattr move_mount name_to_handle_at newfstatat open \
                 open_tree open_tree_attr openat openat2 pivot_root quotactl readlink readlinkat removexattr \
                 removexattrat rename renameat renameat2 rmdir setxattr setxattrat stat statfs statx swapoff swapon \
                 symlink symlinkat truncate umount2 unlink unlinkat uselib utime utimensat utimes"
            }
            CallClass::Desc => {
                "bpf cachestat close close_range copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 \
                 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execveat faccessat faccessat2 \
                 fadvise64 fallocate fanotify_init fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl \
                 fdatasync fgetxattr file_getattr file_setattr finit_module flistxattr flock fremovexattr fsconfig \
                 fsetxattr fsmount fsopen fspick fstat fstatfs fsync ftruncate futimesat getdents getdents64 \
                 getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_uring_enter \
                 io_uring_register io_uring_setup ioctl kcmp linkat listxattrat lseek memfd_create memfd_secret mkdirat \
                 mknodat mmap mount_setattr move_mount mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend \
                 name_to_handle_at newfstatat open open_by_handle_at open_tree open_tree_attr openat openat2 \
                 perf_event_open pidfd_getfd pidfd_open pidfd_send_signal pipe pipe2 poll ppoll pread64 preadv preadv2 \
                 pselect6 pwrite64 pwritev pwritev2 quotactl_fd read readahead readlinkat readv removexattrat renameat \
                 renameat2 select sendfile setns setxattrat signalfd signalfd4 socket socketpair splice statx symlinkat \
                 sync_file_range syncfs tee timerfd_create timerfd_gettime timerfd_settime unlinkat userfaultfd \
                 utimensat vmsplice write writev"
            }
            CallClass::Network => {
                "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg \
                 sendfile sendmmsg sendmsg sendto setsockopt shutdown socket socketcall socketpair"
            }
            CallClass::Process => {
                "clone clone3 execve execveat exit exit_group fork kill pidfd_open pidfd_send_signal rt_sigqueueinfo \
                 rt_tgsigqueueinfo tgkill tkill unshare vfork wait4 waitid"
            }
            CallClass::Memory => {
                "brk get_mempolicy madvise map_shadow_stack mbind migrate_pages mincore mlock mlock2 mlockall mmap \
                 move_pages mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect \
                 process_madvise process_mrelease remap_file_pages set_mempolicy set_mempolicy_home_node shmat shmdt"
            }
            CallClass::Signal => {
                "kill pause pidfd_send_signal rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn \
                 rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sigaltstack signalfd signalfd4 tgkill tkill"
            }
            CallClass::Ipc => {
                "ipc msgctl msgget msgrcv msgsnd semctl semget semop semtimedop shmat shmctl shmdt shmget"
            }
        }
    }
}

impl fmt::Display for CallClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CallClass {
    type Err = ();

    /// strace writes a percent sign before the name; it is accepted here, too.
    fn from_str(name: &str) -> Result<CallClass, ()> {
        let name = name.strip_prefix('%').unwrap_or(name);
        CallClass::ALL.into_iter().find(|class| class.as_str() == name).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_its_class() {
        for class in CallClass::ALL {
            assert_eq!([class.to_string().parse(), format!("%{class}").parse()], [Ok(class); 2]);
        }
        assert!("open".parse::<CallClass>().is_err());
    }

    #[test]
    fn calls_are_of_the_classes_of_what_they_take() {
        let classes = |call: &str| CallClass::ALL.into_iter().filter(|class| class.has(call)).collect::<Vec<_>>();
        assert_eq!(classes("openat"), [CallClass::File, CallClass::Desc]);
        assert_eq!(classes("i386:stat64"), [CallClass::File]);
        assert_eq!(classes("read"), [CallClass::Desc]);
        assert_eq!(classes("execve"), [CallClass::File, CallClass::Process]);
        assert_eq!(classes("getpid"), []);
    }

    /// Fails when a call is added out of order.
    #[test]
    fn calls_are_in_order() {
        for class in CallClass::ALL {
            let calls: Vec<&str> = class.calls().split_ascii_whitespace().collect();
            assert!(calls.is_sorted(), "{class}");
        }
    }

    /// A call that looks up a path takes one.
    #[test]
    fn look_ups_are_of_files() {
        for call in ["stat", "lstat", "newfstatat", "statx", "openat2", "access", "readlinkat", "execveat"] {
            assert!(crate::syscall::looks_up(call) && CallClass::File.has(call), "{call}");
        }
    }
}
