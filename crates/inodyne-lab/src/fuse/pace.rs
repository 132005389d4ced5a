//! When a slow device answers. Pure: times go in, times come out.
//!
//! Each limit is a clock of its own. That of the bandwidth runs on by the time that a request's bytes take, that of the
//! requests by the time that one of them takes; neither runs behind the arrival, so that idleness is not saved up. A
//! request is answered when both have passed it, and the delay later. Delays therefore overlap: requests that arrive
//! together are answered together, as a disk behind a long line would.
//!
//! ```text
//! iops=1000, delay=5ms      arrive  0 ms: a b c
//!                           answer        6: a   7: b   8: c
//! ```

use std::time::Duration;

use crate::limits::Limits;

/// The clocks.
#[derive(Debug)]
pub(super) struct Pace {
    limits: Limits,
    /// When all bytes so far are moved.
    moved: Duration,
    /// When all requests so far are done.
    done: Duration,
}

impl Pace {
    pub fn new(limits: Limits) -> Self {
        Self { limits, moved: Duration::ZERO, done: Duration::ZERO }
    }

    /// When to answer a request that arrives now and moves so many bytes. Times are since any one moment.
    pub fn due(&mut self, now: Duration, bytes: u64) -> Duration {
        let mut due = now;
        if let Some(bandwidth) = self.limits.bandwidth {
            self.moved = self.moved.max(now) + part_of_second(bytes, bandwidth.bytes());
            due = due.max(self.moved);
        }
        if let Some(iops) = self.limits.iops {
            self.done = self.done.max(now) + part_of_second(1, iops.into());
            due = due.max(self.done);
        }
        due + self.limits.delay.map_or(Duration::ZERO, |delay| delay.duration())
    }
}

fn part_of_second(part: u64, whole: u64) -> Duration {
    let nanos = u128::from(part) * 1_000_000_000 / u128::from(whole.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(delay: Option<&str>, bandwidth: Option<&str>, iops: Option<u32>) -> Pace {
        let delay = delay.map(|text| text.parse().unwrap());
        Pace::new(Limits { delay, bandwidth: bandwidth.map(|text| text.parse().unwrap()), iops })
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn delays_overlap() {
        let mut pace = pace(Some("5ms"), None, None);
        assert_eq!([0, 0, 1, 100].map(|now| pace.due(millis(now), 1 << 20)), [5, 5, 6, 105].map(millis));
    }

    #[test]
    fn requests_and_bytes_queue_and_idleness_is_not_saved() {
        let mut pace = pace(Some("5ms"), None, Some(1000));
        assert_eq!([0, 0, 0, 100, 100].map(|now| pace.due(millis(now), 0)), [6, 7, 8, 106, 107].map(millis));
        let mut pace = self::pace(None, Some("1M"), None);
        assert_eq!(pace.due(millis(0), 1 << 20), millis(1000));
        assert_eq!(pace.due(millis(500), 1 << 19), millis(1500));
        assert_eq!(pace.due(millis(9000), 0), millis(9000));
    }

    #[test]
    fn the_narrower_limit_counts() {
        let mut pace = pace(None, Some("1M"), Some(10));
        assert_eq!(pace.due(millis(0), 4096), millis(100));
        assert_eq!(pace.due(millis(0), 1 << 20), Duration::from_nanos(1_003_906_250));
    }
}
