//! How many workers: changed while running, according to the rate.
//!
//! Nobody knows beforehand whether removers will wait for a disk or only for each other: both look idle. So when those
//! at work leave the processors idle, more are tried, and they stay only if they remove more than fewer ever did:
//! otherwise a rate that is low for a moment, because a journal is full, would make any addition look good.
//!
//! ```text
//! rate       100   100   130   132   133   131
//! busy        60%   60%   80%   85%   80%   85%
//! workers    4 ──> 6 ───────> 8 ──> 6 ── no new trial for a while ──
//!            trial   kept   trial   no gain: back
//! ```
//!
//! The decision is a pure function of samples; only [`govern`] has a clock.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use rustix::{
    thread::ClockId,
    time::{Timespec, clock_gettime},
};

/// Decides from samples.
#[derive(Debug)]
pub(super) struct Governor {
    active: usize,
    most: usize,
    /// Workers added at a time.
    step: usize,
    /// The best recent rate with as many workers as there were before the current trial, if there is one.
    best: f64,
    /// Whether the workers that were added last are on trial.
    trial: bool,
    /// Samples until the next trial.
    pause: u32,
}

impl Governor {
    pub fn new(start: usize, most: usize) -> Self {
        Self { active: start, most, step: (start / 2).max(1), best: 0.0, trial: false, pause: 0 }
    }

    /// Takes one sample: entries removed per second, and how much of the active workers' time was processor time.
    pub fn sample(&mut self, rate: f64, busy: f64) -> usize {
        const GAIN: f64 = 1.05;
        const BUSY: f64 = 0.85;
        const PAUSE: u32 = 20;
        /// Trees are not the same everywhere: what was possible a second ago may not be any more.
        const FORGETTING: f64 = 0.98;
        if std::mem::take(&mut self.trial) {
            if rate >= self.best * GAIN {
                self.best = rate;
            } else {
                self.active -= self.step;
                self.pause = PAUSE;
            }
            return self.active;
        }
        self.best = rate.max(self.best * FORGETTING);
        if self.pause > 0 {
            self.pause -= 1;
        } else if busy < BUSY && self.active + self.step <= self.most {
            self.trial = true;
            self.active += self.step;
        }
        self.active
    }
}

/// Samples `done` until `ended` hangs up, and passes on how many workers there should be.
pub(super) fn govern(mut governor: Governor, ended: &Receiver<()>, done: impl Fn() -> u64, apply: impl Fn(usize)) {
    const INTERVAL: Duration = Duration::from_millis(60);
    let (mut time, mut count, mut processor) = (Instant::now(), done(), processor_time());
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let (now, counted, used) = (Instant::now(), done(), processor_time());
        let seconds = (now - time).as_secs_f64();
        let busy = (used - processor).as_secs_f64() / (seconds * governor.active as f64);
        apply(governor.sample((counted - count) as f64 / seconds, busy));
        (time, count, processor) = (now, counted, used);
    }
}

fn processor_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(tv_sec as u64, tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::Governor;

    #[test]
    fn workers_stay_only_if_they_help() {
        let mut governor = Governor::new(4, 12);
        let samples = [(100.0, 0.6), (130.0, 0.8), (132.0, 0.8), (133.0, 0.8)];
        assert_eq!(samples.map(|(rate, busy)| governor.sample(rate, busy)), [6, 6, 8, 6]);
        assert!((0..20).all(|_| governor.sample(100.0, 0.5) == 6));
        assert_eq!(governor.sample(100.0, 0.5), 8);
    }

    #[test]
    fn a_moment_of_standstill_is_no_reason_for_company() {
        let mut governor = Governor::new(4, 12);
        let samples = [(100.0, 0.9), (20.0, 0.3), (101.0, 0.9)];
        assert_eq!(samples.map(|(rate, busy)| governor.sample(rate, busy)), [4, 6, 4]);
    }

    #[test]
    fn busy_workers_get_no_company_and_the_limit_holds() {
        let mut governor = Governor::new(4, 6);
        assert_eq!(governor.sample(100.0, 0.99), 4);
        assert_eq!(governor.sample(100.0, 0.1), 6);
        assert_eq!([150.0, 200.0].map(|rate| governor.sample(rate, 0.1)), [6, 6]);
    }
}
