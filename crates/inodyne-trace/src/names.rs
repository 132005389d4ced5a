//! Names for the numbers of system calls.

use syscalls::Sysno;
#[cfg(target_arch = "aarch64")]
use syscalls::arm::Sysno as Sysno32;
#[cfg(not(target_arch = "aarch64"))]
use syscalls::x86::Sysno as Sysno32;

use crate::contract::{CALL_INVALID, CALL_NONE, CALLS, CALLS_64};

/// The processor whose numbers 32-bit programs use.
const COMPAT: &str = if cfg!(target_arch = "aarch64") { "arm" } else { "i386" };

/// The name of a call as strace prints it; none for [`CALL_NONE`].
pub fn call(call: u16) -> Option<String> {
    let number = usize::from(call);
    match number {
        _ if call == CALL_NONE => None,
        CALL_INVALID => Some("invalid".to_owned()),
        _ if number >= CALLS_64 => {
            let number = number - CALLS_64;
            let name = Sysno32::new(number).map_or_else(|| number.to_string(), |call| call.name().to_owned());
            Some(format!("{COMPAT}:{name}"))
        }
        // As strace and x86-64 call it; arm64's own table says fstatat.
        _ if number == libc::SYS_newfstatat as usize => Some("newfstatat".to_owned()),
        _ => Some(Sysno::new(number).map_or_else(|| format!("syscall_{number:#x}"), |s| s.name().to_owned())),
    }
}

/// Every name that a call can have: the 64-bit ones, and those of 32-bit programs with their processor.
pub fn all() -> impl Iterator<Item = String> {
    (0..CALLS).filter_map(|number| call(number as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_as_strace_names_them() {
        assert_eq!(call(libc::SYS_newfstatat as u16).as_deref(), Some("newfstatat"));
        assert_eq!(call(libc::SYS_pread64 as u16).as_deref(), Some("pread64"));
        // i386 and 32-bit arm number these alike.
        assert_eq!(call(512 + 4), Some(format!("{COMPAT}:write")));
        assert_eq!(call(512 + 195), Some(format!("{COMPAT}:stat64")));
        assert_eq!(call(512 + 511), Some(format!("{COMPAT}:511")));
        assert_eq!(call(500).as_deref(), Some("syscall_0x1f4"));
        assert_eq!(call(CALL_NONE), None);
    }

    unsafe extern "C" {
        fn host_call_of_number(number: u64) -> u16;
    }

    /// x32 has its own numbers on this processor only: `#define __NR_ioctl (__X32_SYSCALL_BIT + 514)`.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_of_x32_are_those_that_the_kernels_header_names() {
        let header = ["/usr/include/x86_64-linux-gnu/asm/unistd_x32.h", "/usr/include/asm/unistd_x32.h"];
        let header = header.iter().find_map(|path| std::fs::read_to_string(path).ok()).expect("the kernel's headers");
        let defined = header.lines().filter_map(|line| {
            let (name, number) = line.strip_prefix("#define __NR_")?.split_once(" (__X32_SYSCALL_BIT + ")?;
            Some((name, number.strip_suffix(')')?.parse::<u64>().ok()?))
        });
        let defined: Vec<(&str, u64)> = defined.collect();
        assert!(defined.iter().filter(|(_, number)| *number >= 512).count() >= 36, "{defined:?}");
        for (name, number) in defined {
            // SAFETY: a pure function.
            let named = unsafe { call(host_call_of_number(0x4000_0000 | number)) };
            let newer = named.as_deref().is_some_and(|named| named.starts_with("syscall_0x"));
            assert!(newer || named.as_deref() == Some(name), "{number} is {name}, not {named:?}");
        }
        // SAFETY: a pure function.
        let beyond = [512, 547, 0x4000_0000 | 600].map(|number| unsafe { host_call_of_number(number) });
        assert_eq!(beyond.map(usize::from), [CALL_INVALID; 3], "without the bit, or after the last");
    }
}
