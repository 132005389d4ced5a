//! The structures and constants that both sides share, as the compiler of the kernel side laid them out.
//!
//! They are generated: the C of `bpf/intf.h` and `probes/*/intf.h` is the only place where they are written, the compiler puts them
//! into the object's BTF, and the skeleton has a Rust type for each. Here they get the names by which Rust knows them, and
//! the promise that any bytes make one. Each probe declares its own in its folder.
//!
//! What a field *means* is tested with the decoder that reads it: C code plants a different number in each field, and the
//! decoder's output must say so (`planted`). That nothing moves unseen is tested in `layout`.

#[cfg(test)]
pub(crate) mod layout;
#[cfg(test)]
pub(crate) mod planted;

/// Rust names for structures of the object, which may be read from maps and ring buffers.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident = $structure:ident;)+) => {$(
        $(#[$doc])*
        pub type $name = $crate::skeleton::types::$structure;
        // SAFETY: the skeleton's structures are `repr(C)` twins of the compiler's, padding included as bytes. The test
        // `layout::only_integers` shows that they consist of integers, for which every bit pattern, all zeros too, is a value.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: as above; and they own nothing and borrow nothing.
        unsafe impl bytemuck::AnyBitPattern for $name {}
    )+};
}

/// Constants of the object's enums, each as a type that holds it (checked by the compiler).
macro_rules! constants {
    ($($enumeration:ident { $($name:ident: $type:ty),+ $(,)? })+) => {$($(
        pub const $name: $type = {
            let value = $crate::skeleton::types::$enumeration::$name.0;
            assert!(value as $type as i128 == value as i128, "it fits");
            value as $type
        };
    )+)+};
}

pub(crate) use {constants, structures};

structures! {
    /// A followed thread and its account.
    Thread = thread;
    /// What an account said when it was last sent.
    LastSent = last_sent;
    /// A kernel stack.
    StackRecord = stack_record;
    /// Counters that both sides see while the trace runs.
    Shared = shared;
}

constants! {
    limits {
        CALLS_64: usize, CALL_INVALID: usize, CALLS: usize, CALL_NONE: u16, GROUPS: usize, GROUP_CALIBRATION: usize,
        CALL_SLOTS: usize, CALL_SLOT_OTHERS: usize, COMM_LENGTH: usize, STACK_DEPTH: usize,
        THREADS_IN_PART: u32,
    }
    thread_number { HELPER_FIRST: u32 }
    thread_state { STATE_READY: u8, STATE_BLOCKED: u8 }
    thread_flag { FLAG_EXITING: u8, FLAG_HELPER: u8, FLAG_KTHREAD: u8, FLAG_SERVER: u8 }
    waker_kind { WAKER_TRACED: u8, WAKER_PROCESS: u8, WAKER_KTHREAD: u8, WAKER_INTERRUPT: u8 }
    loss { LOSSES: usize }
}

/// A C string in a fixed field, up to its zero byte; bytes that are not UTF-8 are replaced.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A path in a fixed field, as many of its bytes as were kept; preceded by `…` if its beginning was cut off. None if more are
/// said to be kept than the field has.
pub fn path_end(bytes: &[u8], length: impl Into<u64>, is_cut: bool) -> Option<String> {
    let kept = String::from_utf8_lossy(bytes.get(..usize::try_from(length.into()).ok()?)?);
    Some(if is_cut { format!("…{kept}") } else { kept.into_owned() })
}

/// A copy of a global variable of the programs, which the kernel may write meanwhile.
pub fn global<T: bytemuck::AnyBitPattern>(variable: &T) -> T {
    // SAFETY: a valid reference to a T that any bytes make; volatile, since another CPU may write.
    unsafe { std::ptr::from_ref(variable).read_volatile() }
}
