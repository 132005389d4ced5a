//! Names of errors, by their slot in the table of calls.

use nix::errno::Errno;

use super::contract::{ERRNO_OTHERS, ERRNO_PLAIN, ERRNO_RESTARTS};

/// The name of an error slot (see `intf.h`).
pub fn name(slot: usize) -> String {
    const RESTARTS: [&str; ERRNO_RESTARTS] =
        ["ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND", "ENOIOCTLCMD", "ERESTART_RESTARTBLOCK"];
    match slot {
        ERRNO_OTHERS.. => "other".to_owned(),
        ERRNO_PLAIN.. => RESTARTS[slot - ERRNO_PLAIN].to_owned(),
        _ => match Errno::from_raw(slot as i32) {
            Errno::UnknownErrno => format!("errno {slot}"),
            known => format!("{known:?}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named() {
        assert_eq!(name(2), "ENOENT");
        assert_eq!(name(ERRNO_PLAIN), "ERESTARTSYS");
        assert_eq!(name(ERRNO_OTHERS), "other");
    }
}
