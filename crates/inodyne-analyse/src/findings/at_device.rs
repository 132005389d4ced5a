//! What the disk that the command worked with did, beside what the command waited for.

use inodyne_model::block::{Amount, Asker, Disk, IoPath, PathRequests};
use inodyne_model::count::Grouped;
use inodyne_model::disk_limits::DiskLimits;
use inodyne_model::disk_use::{DiskLimit, Use};
use inodyne_model::load::Load;

use super::case::Case;
use crate::units::{percent, seconds};

/// Whether these are for contents that the command itself asked for, through the cache or past it.
pub(super) fn is_own_content(row: &PathRequests) -> bool {
    row.asker == Asker::Command && matches!(row.path, IoPath::DataRead | IoPath::ReadAhead | IoPath::Direct)
}

/// The disk that the command worked with, and what it did.
pub(super) struct AtDevice<'a> {
    disk: &'a Disk,
    /// All that it did while the command ran, whoever asked.
    pub(super) load: Load,
    requests: &'a [PathRequests],
    /// What share that is of what the disk can do, where that was measured.
    used: Option<Use>,
}

impl<'a> AtDevice<'a> {
    /// None where block devices were not looked at, or the command worked with none.
    pub(super) fn of(case: &Case<'a>) -> Option<AtDevice<'a>> {
        let block = case.trace.block.as_ref()?;
        let number = &block.bound.as_ref()?.disk;
        let disk = block.disks.iter().find(|disk| disk.number == *number)?;
        let load = Load::of(disk, &block.paths, case.trace.wall_ns);
        let used = Use::of(disk, block, &load);
        Some(AtDevice { disk, load, requests: &block.paths, used })
    }

    /// `loop0 has 1.0 requests in flight while busy, 98% of the time; each takes 5.21 ms there`; none where no request was timed.
    pub(super) fn line(&self) -> Option<String> {
        let Load { busy, depth, device_ns, .. } = &self.load;
        let each = seconds(device_ns.as_ref()?.0 as f64);
        let (name, busy) = (&self.disk.name, percent(*busy));
        Some(format!(
            "{name} has {depth:.1} requests in flight while busy, {busy} of the time; each takes {each} there"
        ))
    }

    /// `loop0 can read 78.0 MB a second in sequence, as measured earlier; here it did 96% of what it can do`; none where that was not
    /// measured, or is not what was asked of it.
    pub(super) fn limit_line(&self) -> Option<String> {
        let Use { of, share, alone_ns } = self.used.as_ref()?;
        let can = match of {
            DiskLimit::BytesRead(most) => format!("read {:.1} MB a second in sequence", *most as f64 / 1e6),
            DiskLimit::BytesWritten(most) => format!("write {:.1} MB a second in sequence", *most as f64 / 1e6),
            DiskLimit::Reads(most) => {
                format!("answer {} reads a second, {} at once", Grouped(*most), DiskLimits::AT_ONCE)
            }
        };
        let alone = alone_ns.map_or_else(String::new, |ns| format!(", and one alone in {}", seconds(ns.0 as f64)));
        let (name, share) = (&self.disk.name, percent(*share));
        Some(format!("{name} can {can}{alone}, as measured earlier; here it did {share} of what it can do"))
    }

    /// What share this is of what the disk can do, where that was measured.
    pub(super) fn used_share(&self) -> Option<f64> {
        self.used.as_ref().map(|used| used.share)
    }

    /// What the disk can do, where that was measured.
    pub(super) fn limits(&self) -> Option<&DiskLimits> {
        self.disk.limits.as_ref()
    }

    /// The contents that the command itself asked for, through the cache and past it.
    pub(super) fn contents(&self) -> Amount {
        self.sum(is_own_content)
    }

    /// The requests to this disk while the command ran for which `is_meant` holds.
    pub(super) fn sum(&self, is_meant: impl Fn(&PathRequests) -> bool) -> Amount {
        let mut all = Amount::default();
        let of_disk = self.requests.iter().filter(|row| row.disk == self.disk.number && !row.after);
        of_disk.filter(|row| is_meant(row)).for_each(|row| all.add(&row.amount));
        all
    }
}
