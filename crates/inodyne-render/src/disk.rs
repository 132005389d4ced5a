//! What a disk can do, and how much of that a command used, in words.

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::disk_limits::{DiskLimits, Latency};
use inodyne_model::disk_use::{DiskLimit, Use};
use inodyne_model::load::Load;

use crate::units::{bytes, date, duration, percent, rate, rate_of_bytes};

/// What a disk can do: `a read of 4 KiB takes 67.1 µs (99% below 1.09 ms), 96,912 a second 32 at once; 1.30 GB read and 780 MB written a
/// second in sequence; a flush takes 224 µs (99% below 7.90 ms); measured 2026-11-23 06:45, ext4, Linux 6.18.5`
pub fn disk_limits(limits: &DiskLimits) -> String {
    let time = |Latency { p50_ns, p99_ns }| format!("{} (99% below {})", duration(p50_ns), duration(p99_ns));
    format!(
        "a read of 4 KiB takes {}, {} a second {} at once; {} read and {} written a second in sequence; a flush takes {}; \
         measured {}, {}, Linux {}",
        time(limits.read),
        Grouped(limits.reads_per_s),
        DiskLimits::AT_ONCE,
        bytes(limits.read_bytes_per_s),
        bytes(limits.write_bytes_per_s),
        time(limits.flush),
        date(limits.measured_unix_s),
        limits.fs,
        limits.kernel,
    )
}

/// How much of what a disk can do was used: `reads at 3% of what loop0 can do (192 of 6,012 requests a second, 32 at once), one at
/// a time: 5.20 ms each, 5.10 ms measured alone`
pub(crate) fn made_use_of(name: &str, used: &Use, load: &Load) -> String {
    let moved = rate_of_bytes(load.bytes_per_s);
    let (verb, figures) = match used.of {
        DiskLimit::BytesRead(most) => ("reads", format!("{moved} of {} a second in sequence", bytes(most))),
        DiskLimit::BytesWritten(most) => ("writes", format!("{moved} of {} a second in sequence", bytes(most))),
        DiskLimit::Reads(most) => (
            "reads",
            format!(
                "{} of {} requests a second, {} at once",
                rate(load.requests_per_s),
                Grouped(most),
                DiskLimits::AT_ONCE
            ),
        ),
    };
    let alone = |alone: Nanos| {
        Some(format!(", one at a time: {} each, {} measured alone", duration(load.device_ns?), duration(alone)))
    };
    let alone = used.alone_ns.and_then(alone).unwrap_or_default();
    format!("{verb} at {} of what {name} can do ({figures}){alone}", percent(used.share))
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;

    #[test]
    fn what_a_disk_can_do_is_one_line() {
        let expected = "a read of 4 KiB takes 190 µs (99% below 400 µs), 6,012 a second 32 at once; 78.0 MB read and 70.0 MB written a \
            second in sequence; a flush takes 5.10 ms (99% below 11.0 ms); measured 2026-09-21 14:13, ext4, Linux 6.18.5";
        assert_eq!(disk_limits(&sample::disk_limits()), expected);
    }

    #[test]
    fn what_is_made_use_of_is_said_with_the_figures_beside_it() {
        let load = Load {
            bytes_per_s: 786_432.0,
            requests_per_s: 192.0,
            device_ns: Some(Nanos(5_200_000)),
            ..Load::default()
        };
        let said = |of, share, alone_ns| made_use_of("sda", &Use { of, share, alone_ns }, &load);
        assert_eq!(
            said(DiskLimit::Reads(6_012), 0.032, Some(Nanos(5_100_000))),
            "reads at 3% of what sda can do (192 of 6,012 requests a second, 32 at once), one at a time: 5.20 ms each, 5.10 ms measured \
             alone"
        );
        let slow = Load { requests_per_s: 0.4, ..Load::default() };
        let used = Use { of: DiskLimit::Reads(6_012), share: 0.0001, alone_ns: None };
        assert!(made_use_of("sda", &used, &slow).contains("(0.4 of 6,012 requests a second"));
        assert_eq!(
            said(DiskLimit::BytesWritten(70_000_000), 0.011, None),
            "writes at 1% of what sda can do (786 kB of 70.0 MB a second in sequence)"
        );
    }
}
