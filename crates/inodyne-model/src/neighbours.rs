//! What others used of the machine while a command ran.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Whether a process of this name is this program or one of its servers (`inodyne-disk` for a slow device, `inodyne-fuse`, both sides of
/// a share), which work for the command.
pub fn is_own(comm: &str) -> bool {
    comm.strip_prefix("inodyne").is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// What others used of the machine, from just before the command's release until its end. None of it is the command's doing: its own
/// processes, kernel threads and inodyne's servers are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Neighbours {
    /// From the beginning of the first look at them to the end of the second, which encloses the run: what they used, they used in this
    /// time. Zero in recordings that do not have it.
    #[serde(default)]
    pub span_ns: Nanos,
    /// What the hypervisor gave to other virtual machines, summed over CPUs, in steps of 10 ms (proc_stat(5): steal).
    #[serde(default)]
    pub stolen_ns: Nanos,
    /// Programs that ran or did I/O, the busiest first, at most [`Neighbours::MOST`].
    #[serde(default)]
    pub processes: Vec<Neighbour>,
}

/// A process that was there before the command, including children that ended meanwhile and that it waited for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its process id.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// CPU time, in steps of 10 ms (proc_pid_stat(5)).
    pub cpu_ns: Nanos,
    /// Bytes that it caused to be read from storage (proc_pid_io(5)).
    #[serde(default)]
    pub read_bytes: u64,
    /// Bytes that it caused to be written to storage, or that were still to be written for it.
    #[serde(default)]
    pub write_bytes: u64,
}

impl Neighbours {
    /// How many processes are kept.
    pub const MOST: usize = 20;

    /// How many CPUs they had on average if they used this much CPU time, for a run that took `wall`.
    pub fn cpus(&self, used: Nanos, wall: Nanos) -> f64 {
        used.share_of(self.span_ns.max(wall))
    }
}
