//! Lines on standard error and standard output, for which `eprintln!` and `println!` would panic where they cannot be written, as on a
//! full disk.

/// Writes a line to standard error, like `eprintln!`, or does not: what is being measured goes on.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stderr().lock(), $($text)*);
    }};
}

/// Writes a line to standard output, like `println!`; the value is a `Failure` if it cannot.
macro_rules! show {
    ($($text:tt)*) => {
        crate::report::write(format!("{}\n", format_args!($($text)*)).as_bytes(), None)
    };
}

pub(crate) use {say, show};
