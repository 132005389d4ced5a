//! Collect: what the kernel saw of a command.
//!
//! [`Tracer`] loads the BPF programs, follows one command and its descendants and returns sums, tables and a timeline;
//! [`launch`] starts the command under a guard, held until it is released, as the user it belongs to. Nothing is
//! explained here: that is `inodyne-analyse`.
//!
//! ```text
//! bpf/            the C that all probes share: the contract (intf.h), maps, thread accounts, the state machine (clock.h)
//! probes/NAME/    a probe: its BPF C (probe.bpf.h) and the Rust that reads its tables (mod.rs)
//! session         load, attach, drain, finish: the life of a Tracer
//! symbols         addresses in kernel stacks to names;  user_symbols  the same in user mode
//! mapped_files    where the code of processes lies that are gone when it is named
//! calibrate       what one call costs more with tracing
//! launch/         the held command, its guard, and what they say to each other
//! libbpf_log      what libbpf says goes into the error
//! capability      what this machine lacks
//! ```

mod calibrate;
pub mod capability;
#[cfg(test)]
mod clock;
mod intf;
pub mod launch;
mod libbpf_log;
mod map;
mod mapped_files;
mod names;
mod probes;
mod session;
mod skeleton;
mod stream;
mod symbols;
mod user_symbols;

pub use session::{Collected, Options, TraceError, Tracer, monotonic_ns};
