//! One folder a probe: its BPF C, and the Rust that reads the tables it fills.

pub mod calls;
pub mod dtype;
pub mod lives;
pub mod paths;
pub mod samples;
pub mod switches;
