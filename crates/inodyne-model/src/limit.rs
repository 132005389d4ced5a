//! What the cgroups of a command allowed it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::count::Grouped;

/// A limit of a cgroup that the command was in, or of one above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The file that sets it: `/sys/fs/cgroup/build/io.max`.
    pub file: String,
    /// What it limits.
    pub kind: LimitKind,
    /// For which device, as `MAJOR:MINOR`, where it is an I/O limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How much it allows, in the unit of its kind.
    pub value: u64,
    /// How much of it the cgroup used while the command ran, as the cgroup itself counts it: bytes or requests of this device; zero
    /// where it is not counted.
    #[serde(default)]
    pub used: u64,
    /// For how long it kept threads from running meanwhile, summed over CPUs, where the cgroup counts that.
    #[serde(default)]
    pub held_ns: Nanos,
}

/// What a limit is about, and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WriteBytes,
    /// Read requests per second.
    ReadRequests,
    /// Write requests per second.
    WriteRequests,
    /// CPUs, in thousandths of one.
    Cpu,
    /// Bytes of memory.
    Memory,
}

impl LimitKind {
    /// Whether it limits how fast a device is read.
    pub fn is_of_reads(self) -> bool {
        matches!(self, LimitKind::ReadBytes | LimitKind::ReadRequests)
    }

    /// Whether it limits how fast a device is written.
    pub fn is_of_writes(self) -> bool {
        matches!(self, LimitKind::WriteBytes | LimitKind::WriteRequests)
    }
}

/// `200 read requests a second of 7:0`
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.value as f64 / 1e6;
        match self.kind {
            LimitKind::ReadBytes => write!(f, "{megabytes:.1} MB read a second")?,
            LimitKind::WriteBytes => write!(f, "{megabytes:.1} MB written a second")?,
            LimitKind::ReadRequests => write!(f, "{} read requests a second", Grouped(self.value))?,
            LimitKind::WriteRequests => write!(f, "{} write requests a second", Grouped(self.value))?,
            LimitKind::Cpu => write!(f, "{:.2} CPUs", self.value as f64 / 1e3)?,
            LimitKind::Memory => write!(f, "{megabytes:.1} MB of memory")?,
        }
        self.device.as_ref().map_or(Ok(()), |device| write!(f, " of {device}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_said_with_its_unit_and_device() {
        let limit = |kind, value, device: Option<&str>| Limit {
            file: String::new(),
            kind,
            device: device.map(str::to_owned),
            value,
            used: 0,
            held_ns: Nanos::ZERO,
        };
        assert_eq!(
            limit(LimitKind::ReadRequests, 1200, Some("7:0")).to_string(),
            "1,200 read requests a second of 7:0"
        );
        assert_eq!(limit(LimitKind::WriteBytes, 1 << 20, Some("8:0")).to_string(), "1.0 MB written a second of 8:0");
        assert_eq!(limit(LimitKind::Cpu, 250, None).to_string(), "0.25 CPUs");
    }
}
