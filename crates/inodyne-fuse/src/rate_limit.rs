//! When a slow device answers. Pure: times go in, times come out.
//!
//! Each limit is a clock of its own. The bandwidth clock advances by the time that a request's bytes take, the request clock
//! by the time that one request takes; neither lags behind the arrival, so that idle time is not saved up. A request is
//! answered once both have passed it, and the delay later. Delays therefore overlap: requests that arrive together are
//! answered together, as by a disk at the far end of a long line.
//!
//! ```text
//! iops=1000, delay=5ms      arrive  0 ms: a b c
//!                           answer        6: a   7: b   8: c
//! ```

use std::time::Duration;

/// How slow answers are to be. Each on its own, or together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Every request is answered this much later.
    pub delay: Duration,
    /// This many bytes are moved per second, reads and writes together.
    pub bytes_per_second: Option<u64>,
    /// This many requests are answered per second.
    pub requests_per_second: Option<u32>,
}

/// The clocks.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    rates: Rates,
    /// When all bytes so far are moved.
    moved: Duration,
    /// When all requests so far are done.
    done: Duration,
}

impl RateLimiter {
    pub fn new(rates: Rates) -> Self {
        Self { rates, moved: Duration::ZERO, done: Duration::ZERO }
    }

    /// When to answer a request that arrives now and moves this many bytes. Times are since any fixed moment.
    pub fn due(&mut self, now: Duration, bytes: u64) -> Duration {
        let mut due = now;
        if let Some(bytes_per_second) = self.rates.bytes_per_second {
            self.moved = self.moved.max(now) + part_of_second(bytes, bytes_per_second);
            due = due.max(self.moved);
        }
        if let Some(requests_per_second) = self.rates.requests_per_second {
            self.done = self.done.max(now) + part_of_second(1, requests_per_second.into());
            due = due.max(self.done);
        }
        due + self.rates.delay
    }
}

fn part_of_second(part: u64, whole: u64) -> Duration {
    let nanos = u128::from(part) * 1_000_000_000 / u128::from(whole.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(delay_ms: u64, bytes_per_second: Option<u64>, requests_per_second: Option<u32>) -> RateLimiter {
        RateLimiter::new(Rates { delay: millis(delay_ms), bytes_per_second, requests_per_second })
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn delays_overlap() {
        let mut limiter = limiter(5, None, None);
        assert_eq!([0, 0, 1, 100].map(|now| limiter.due(millis(now), 1 << 20)), [5, 5, 6, 105].map(millis));
    }

    #[test]
    fn requests_and_bytes_queue_and_idleness_is_not_saved() {
        let mut limiter = limiter(5, None, Some(1000));
        assert_eq!([0, 0, 0, 100, 100].map(|now| limiter.due(millis(now), 0)), [6, 7, 8, 106, 107].map(millis));
        let mut limiter = self::limiter(0, Some(1 << 20), None);
        assert_eq!(limiter.due(millis(0), 1 << 20), millis(1000));
        assert_eq!(limiter.due(millis(500), 1 << 19), millis(1500));
        assert_eq!(limiter.due(millis(9000), 0), millis(9000));
    }

    #[test]
    fn the_narrower_limit_counts() {
        let mut limiter = limiter(0, Some(1 << 20), Some(10));
        assert_eq!(limiter.due(millis(0), 4096), millis(100));
        assert_eq!(limiter.due(millis(0), 1 << 20), Duration::from_nanos(1_003_906_250));
    }
}
