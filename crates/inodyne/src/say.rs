//! Lines on standard error. Where they cannot be written, as on a full disk, what is being measured goes on: `eprintln!` would panic.

/// Writes a line to standard error, like `eprintln!`, or does not.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stderr().lock(), $($text)*);
    }};
}

pub(crate) use say;
