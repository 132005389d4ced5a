//! What a disk did while a command ran, in figures.

use crate::Nanos;
use crate::block::{Amount, Disk, IoPath, PathRequests};

/// What a disk did while a command ran, whoever asked for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Load {
    /// The fraction of the time during which at least one request was at the device.
    pub busy: f64,
    /// How many were there at once during that time, on average.
    pub depth: f64,
    /// Bytes moved per second.
    pub bytes_per_s: f64,
    /// Requests per second that move data.
    pub requests_per_s: f64,
    /// How long such a request was at the device, on average; none where no time is known.
    pub device_ns: Option<Nanos>,
    /// All of these together. Requests that only say that space is free, or that only flush, move nothing.
    pub amount: Amount,
}

impl Load {
    /// For a disk over a time of this length. Its requests are picked from those of all disks. What was done after the command's end
    /// takes its share of the time in which the disk was busy, and nothing else.
    pub fn of(disk: &Disk, paths: &[PathRequests], wall: Nanos) -> Load {
        let (mut amount, mut at_device, mut after) = (Amount::default(), 0.0, 0.0);
        for row in paths.iter().filter(|row| row.disk == disk.number) {
            let sum = if row.after { &mut after } else { &mut at_device };
            *sum += row.amount.device_ns.as_secs_f64();
            if row.moves() && !matches!(row.path, IoPath::Flush | IoPath::FlushAsked) {
                amount.add(&row.amount);
            }
        }
        let part = |of: f64, whole: f64| if whole > 0.0 { of / whole } else { 0.0 };
        let (wall, busy) = (wall.as_secs_f64(), disk.busy_ns.as_secs_f64());
        Load {
            busy: part(busy * part(at_device, at_device + after), wall).min(1.0),
            depth: part(at_device + after, busy),
            bytes_per_s: part(amount.bytes as f64, wall),
            requests_per_s: part(amount.requests as f64, wall),
            device_ns: amount.mean_device_ns(),
            amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::IoPath;

    #[test]
    fn the_time_after_the_end_is_taken_out_and_discards_move_nothing() {
        let ns = |ms: u64| Nanos(ms * 1_000_000);
        let row = |path, after, requests, ms| PathRequests {
            disk: "7:0".to_owned(),
            path,
            after,
            amount: Amount { requests, timed: requests, bytes: requests << 20, device_ns: ns(ms), ..Amount::default() },
            ..PathRequests::default()
        };
        let elsewhere = PathRequests { disk: "8:0".to_owned(), ..row(IoPath::Direct, false, 9, 9_000) };
        let disk = Disk { number: "7:0".to_owned(), busy_ns: ns(1_000), ..Disk::default() };
        let paths = [
            row(IoPath::DataRead, false, 10, 1_000),
            row(IoPath::Discard, false, 3, 300),
            row(IoPath::FlushAsked, false, 2, 0),
            row(IoPath::Flush, false, 2, 200),
            row(IoPath::Writeback, true, 20, 500),
            elsewhere,
        ];
        let load = Load::of(&disk, &paths, ns(1_000));
        assert_eq!((load.busy, load.depth), (0.75, 2.0));
        assert_eq!((load.requests_per_s, load.bytes_per_s), (10.0, f64::from(10 << 20)));
        assert_eq!(load.device_ns, Some(ns(100)));
        // A disk that did nothing, in no time.
        assert_eq!(Load::of(&Disk::default(), &[], Nanos::ZERO), Load::default());
    }
}
