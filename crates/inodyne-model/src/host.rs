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
    /// How many of them inodyne might use, and with it the command, where its affinity or its cgroup allowed it fewer. Recordings from
    /// before this was recorded have this number in `cpus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable_cpus: Option<u32>,
    /// Model name of the first CPU.
    pub cpu_model: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// True where the CPU reports a hypervisor.
    pub virtual_machine: bool,
}

impl Host {
    /// CPUs that the command might use.
    pub fn usable_cpus(&self) -> u32 {
        self.usable_cpus.unwrap_or(self.cpus)
    }
}
