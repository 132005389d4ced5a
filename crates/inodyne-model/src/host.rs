//! The machine on which a recording was made.

use serde::{Deserialize, Serialize};

/// The machine, as far as it matters for a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Machine architecture (`uname -m`).
    pub arch: String,
    /// CPUs online.
    pub cpus: u32,
    /// Model name of the first CPU.
    pub cpu_model: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// True where the CPU reports a hypervisor.
    pub virtual_machine: bool,
}
