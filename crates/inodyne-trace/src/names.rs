//! Names for the numbers of system calls.

use syscalls::x86_64::Sysno;

use crate::contract::{CALL_INVALID, CALL_NONE, CALLS_64};

/// The name of a call as strace prints it; none for [`CALL_NONE`].
pub fn call(call: u16) -> Option<String> {
    let number = usize::from(call);
    match number {
        _ if call == CALL_NONE => None,
        CALL_INVALID => Some("invalid".to_owned()),
        _ if number >= CALLS_64 => Some(format!("i386:{}", number - CALLS_64)),
        _ => Some(Sysno::new(number).map_or_else(|| format!("syscall_{number:#x}"), |s| s.name().to_owned())),
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
        assert_eq!(call(CALL_NONE), None);
    }
}
