//! Names for the numbers of the kernel: system calls, errors, groups of commands.

use std::collections::HashMap;

use nix::errno::Errno;
use syscalls::x86_64::Sysno;

use crate::intf;

/// The name of a call as strace prints it; none for [`intf::CALL_NONE`].
pub fn call(call: u16) -> Option<String> {
    let number = usize::from(call);
    match number {
        _ if call == intf::CALL_NONE => None,
        intf::CALL_INVALID => Some("invalid".to_owned()),
        _ if number >= intf::CALLS_64 => Some(format!("i386:{}", number - intf::CALLS_64)),
        _ => Some(Sysno::new(number).map_or_else(|| format!("syscall_{number:#x}"), |s| s.name().to_owned())),
    }
}

/// Whether a call of this name returns a number of bytes that it has moved between a file and the process, or two files.
pub fn returns_bytes(name: &str) -> bool {
    matches!(
        name,
        "read"
            | "write"
            | "pread64"
            | "pwrite64"
            | "readv"
            | "writev"
            | "preadv"
            | "pwritev"
            | "preadv2"
            | "pwritev2"
            | "sendfile"
            | "splice"
            | "copy_file_range"
            | "recvfrom"
            | "sendto"
            | "recvmsg"
            | "sendmsg"
            | "getdents64"
    )
}

/// The name of an error slot of a cell (see `intf.h`).
pub fn errno(slot: usize) -> String {
    const RESTARTS: [&str; intf::ERRNO_RESTARTS] =
        ["ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND", "ENOIOCTLCMD", "ERESTART_RESTARTBLOCK"];
    match slot {
        intf::ERRNO_OTHERS.. => "other".to_owned(),
        intf::ERRNO_PLAIN.. => RESTARTS[slot - intf::ERRNO_PLAIN].to_owned(),
        _ => match Errno::from_raw(slot as i32) {
            Errno::UnknownErrno => format!("errno {slot}"),
            known => format!("{known:?}"),
        },
    }
}

/// Command names by group.
pub struct Groups(HashMap<u32, String>);

impl Groups {
    /// From the pairs of the map `groups`.
    pub fn new(pairs: Vec<([u8; intf::COMM_LENGTH], u32)>) -> Groups {
        Groups(pairs.into_iter().map(|(comm, group)| (group, intf::text(&comm))).collect())
    }

    /// The command name of a group; `(others)` for those that found no group.
    pub fn name(&self, group: usize) -> String {
        self.0.get(&(group as u32)).cloned().unwrap_or_else(|| "(others)".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_as_strace_names_them() {
        assert_eq!(call(262).as_deref(), Some("newfstatat"));
        assert_eq!(call(17).as_deref(), Some("pread64"));
        assert_eq!(call(512 + 4).as_deref(), Some("i386:4"));
        assert_eq!(call(500).as_deref(), Some("syscall_0x1f4"));
        assert_eq!(call(intf::CALL_NONE), None);
    }

    #[test]
    fn errors_are_named() {
        assert_eq!(errno(2), "ENOENT");
        assert_eq!(errno(intf::ERRNO_PLAIN), "ERESTARTSYS");
        assert_eq!(errno(intf::ERRNO_OTHERS), "other");
    }
}
