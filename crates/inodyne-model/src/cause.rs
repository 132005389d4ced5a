//! Why a thread was blocked: one word from a fixed list.

use serde::{Deserialize, Serialize};

/// The reason for a wait. Which kernel stacks mean which cause is decided by one table in `inodyne-analyse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Data or metadata is being read from a block device.
    DeviceRead,
    /// A block device is writing (writeback of a page, a buffer, a direct write).
    DeviceWrite,
    /// A device's write cache is being flushed.
    DeviceFlush,
    /// A journal or log: its commit, its space, its handles.
    Journal,
    /// The lock of an inode or directory (`i_rwsem`, `inode_lock`).
    InodeLock,
    /// The lock of a metadata buffer (`xfs_buf_lock`, a btrfs tree block, a buffer head).
    BufferLock,
    /// Another kernel lock.
    Lock,
    /// An RCU grace period: until no CPU can see any more what was there before.
    Rcu,
    /// Too many dirty pages: the writer is made to wait (`balance_dirty_pages`).
    WriteThrottle,
    /// The block layer's queue is full (no free request, writeback throttling, io cgroup).
    QueueFull,
    /// A FUSE server in user space has not answered yet.
    FuseServer,
    /// A server on another machine, or on a virtual machine's host, has not answered yet.
    RemoteServer,
    /// The other end of a pipe.
    Pipe,
    /// The other end of a socket.
    Socket,
    /// Another thread, by way of a futex.
    Futex,
    /// A child process that has not ended (or, for `vfork`, not executed) yet.
    Child,
    /// The program asked to sleep.
    Sleep,
    /// `poll`, `select`, `epoll_wait` and their like, on several things at once.
    Poll,
    /// Memory: reclaim, compaction, swap, a cgroup's limit.
    Memory,
    /// Stopped by a signal or held by a debugger.
    Stopped,
    /// No rule knows the stack; it is shown instead.
    Other,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 21] = [
        Cause::DeviceRead,
        Cause::DeviceWrite,
        Cause::DeviceFlush,
        Cause::Journal,
        Cause::InodeLock,
        Cause::BufferLock,
        Cause::Lock,
        Cause::Rcu,
        Cause::WriteThrottle,
        Cause::QueueFull,
        Cause::FuseServer,
        Cause::RemoteServer,
        Cause::Pipe,
        Cause::Socket,
        Cause::Futex,
        Cause::Child,
        Cause::Sleep,
        Cause::Poll,
        Cause::Memory,
        Cause::Stopped,
        Cause::Other,
    ];

    /// The word used in reports and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::DeviceRead => "device-read",
            Cause::DeviceWrite => "device-write",
            Cause::DeviceFlush => "device-flush",
            Cause::Journal => "journal",
            Cause::InodeLock => "inode-lock",
            Cause::BufferLock => "buffer-lock",
            Cause::Lock => "lock",
            Cause::Rcu => "rcu",
            Cause::WriteThrottle => "write-throttle",
            Cause::QueueFull => "queue-full",
            Cause::FuseServer => "fuse-server",
            Cause::RemoteServer => "remote-server",
            Cause::Pipe => "pipe",
            Cause::Socket => "socket",
            Cause::Futex => "futex",
            Cause::Child => "child",
            Cause::Sleep => "sleep",
            Cause::Poll => "poll",
            Cause::Memory => "memory",
            Cause::Stopped => "stopped",
            Cause::Other => "other",
        }
    }

    /// Whether waiting for this means waiting for a kernel lock.
    pub fn is_lock(self) -> bool {
        matches!(self, Cause::Lock | Cause::InodeLock | Cause::BufferLock)
    }

    /// Whether waiting for this means waiting for a block device.
    pub fn is_of_device(self) -> bool {
        matches!(
            self,
            Cause::DeviceRead
                | Cause::DeviceWrite
                | Cause::DeviceFlush
                | Cause::Journal
                | Cause::QueueFull
                | Cause::WriteThrottle
        )
    }

    /// Whether waiting for this means waiting for files.
    pub fn is_of_files(self) -> bool {
        match self {
            Cause::DeviceRead
            | Cause::DeviceWrite
            | Cause::DeviceFlush
            | Cause::Journal
            | Cause::InodeLock
            | Cause::BufferLock
            | Cause::WriteThrottle
            | Cause::QueueFull
            | Cause::FuseServer
            | Cause::RemoteServer => true,
            Cause::Lock
            | Cause::Rcu
            | Cause::Pipe
            | Cause::Socket
            | Cause::Futex
            | Cause::Child
            | Cause::Sleep
            | Cause::Poll
            | Cause::Memory
            | Cause::Stopped
            | Cause::Other => false,
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_reports_use_the_same_word() {
        for cause in Cause::ALL {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
        }
    }
}
