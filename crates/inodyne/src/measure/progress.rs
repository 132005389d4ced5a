//! What a terminal shows meanwhile: which block it is; and of a command, how long it runs and how many calls a second.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use inodyne_model::run::CacheState;

use super::Effort;

/// A short command shows nothing.
const FIRST_AFTER: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(500);

/// What a block is for, with its number among those of its kind.
#[derive(Debug, Clone, Copy)]
pub enum Phase {
    WarmUp(u32),
    Untraced(u32),
    Traced(u32),
}

/// Which block runs, and how long the rest may take: a line that is gone at the end. Nothing for a single block.
pub struct Schedule {
    bar: ProgressBar,
    begun: Instant,
    ahead: Ahead,
}

impl Schedule {
    /// Shows nothing at all where `quiet`.
    pub fn start(quiet: bool, effort: Effort) -> Schedule {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::no_length() };
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
        Schedule { bar, begun: Instant::now(), ahead: Ahead { effort, begun: 0 } }
    }

    /// A block begins, in this state of the caches; so many further states come after it.
    pub fn block(&mut self, cache: CacheState, later_caches: u32, phase: Phase) {
        let told = self.ahead.begin(cache, later_caches, phase, self.begun.elapsed());
        self.bar.set_message(told);
        self.bar.tick();
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How many blocks there are still to be. Pure.
struct Ahead {
    effort: Effort,
    /// Blocks so far, of all kinds.
    begun: u32,
}

impl Ahead {
    /// What is said where a block begins after so long.
    fn begin(&mut self, cache: CacheState, later_caches: u32, phase: Phase, elapsed: Duration) -> String {
        let Effort { warmup, untraced, traced, until, max_time } = self.effort;
        let before = self.begun;
        self.begun = before.saturating_add(1);
        // Of this state of the caches: untraced ones, which a time to keep may cut short, and others.
        let (timed, others, what) = match phase {
            Phase::WarmUp(block) => (untraced, (warmup - block).saturating_add(traced), "warming up".to_owned()),
            Phase::Untraced(block) if block >= untraced => {
                return format!("{cache}: block {}, until the interval is narrow enough", block + 1);
            }
            Phase::Untraced(block) => (untraced - block, traced, format!("block {} of {untraced}", block + 1)),
            Phase::Traced(block) => (0, traced - block, format!("traced block {} of {traced}", block + 1)),
        };
        let timed = timed.saturating_add(untraced.saturating_mul(later_caches));
        let others = others.saturating_add(warmup.saturating_add(traced).saturating_mul(later_caches));
        if before == 0 && timed.saturating_add(others) < 2 && until.is_none() {
            return String::new();
        }
        let Some(each) = elapsed.checked_div(before) else { return format!("{cache}: {what}") };
        let kept = max_time.map_or(Duration::MAX, |most| most.saturating_sub(elapsed));
        let left = each.saturating_mul(timed).min(kept).saturating_add(each.saturating_mul(others));
        format!("{cache}: {what}, about {} left", HumanDuration(left))
    }
}

/// A line that is gone when the command is.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: Cell<Option<(Instant, u64)>>,
}

impl Progress {
    /// Shows nothing at all where `quiet`.
    pub fn start(quiet: bool) -> Progress {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::no_length() };
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("the template is valid"));
        Progress { bar, started: Instant::now(), shown: Cell::new(None) }
    }

    /// Renews the line when it is time; `calls` is only asked for then.
    pub fn tick(&self, calls: impl FnOnce() -> u64) {
        let now = Instant::now();
        let due = match self.shown.get() {
            None => now - self.started >= FIRST_AFTER,
            Some((last, _)) => now - last >= EVERY,
        };
        if self.bar.is_hidden() || !due {
            return;
        }
        let calls = calls();
        let (since, before) = self.shown.get().unwrap_or((self.started, 0));
        let rate = calls.saturating_sub(before) as f64 / (now - since).as_secs_f64();
        let elapsed = (now - self.started).as_secs_f64();
        self.bar.set_message(format!("{elapsed:.1} s · {} calls a second", HumanCount(rate as u64)));
        self.bar.tick();
        self.shown.set(Some((now, calls)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(untraced: u32, traced: u32, max_time: Option<u64>) -> Ahead {
        let max_time = max_time.map(Duration::from_secs);
        Ahead { effort: Effort { warmup: 1, untraced, traced, until: None, max_time }, begun: 0 }
    }

    /// Every block takes ten seconds.
    fn told(ahead: &mut Ahead, cache: CacheState, later_caches: u32, phase: Phase) -> String {
        let elapsed = Duration::from_secs(10) * ahead.begun;
        ahead.begin(cache, later_caches, phase, elapsed)
    }

    #[test]
    fn what_is_left_is_that_of_all_states_of_the_caches() {
        let mut ahead = ahead(2, 1, None);
        let phases = [Phase::WarmUp(0), Phase::Untraced(0), Phase::Untraced(1), Phase::Traced(0)];
        let all: Vec<String> = [(CacheState::Cold, 1), (CacheState::Warm, 0)]
            .into_iter()
            .flat_map(|(cache, later)| phases.map(|phase| (cache, later, phase)))
            .map(|(cache, later, phase)| told(&mut ahead, cache, later, phase))
            .collect();
        let expected = [
            "cold: warming up",
            "cold: block 1 of 2, about 70 seconds left",
            "cold: block 2 of 2, about 60 seconds left",
            "cold: traced block 1 of 1, about 50 seconds left",
            "warm: warming up, about 40 seconds left",
            "warm: block 1 of 2, about 30 seconds left",
            "warm: block 2 of 2, about 20 seconds left",
            "warm: traced block 1 of 1, about 10 seconds left",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_time_to_keep_cuts_untraced_blocks_short() {
        let mut ahead = ahead(1000, 1, Some(25));
        let phases = [Phase::WarmUp(0), Phase::Untraced(0), Phase::Untraced(1), Phase::Traced(0)];
        let all = phases.map(|phase| told(&mut ahead, CacheState::Cold, 0, phase));
        let expected = [
            "cold: warming up",
            "cold: block 1 of 1000, about 25 seconds left",
            "cold: block 2 of 1000, about 15 seconds left",
            "cold: traced block 1 of 1, about 10 seconds left",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn of_one_block_nothing_is_said_and_nothing_overflows() {
        let effort = Effort { warmup: 0, untraced: 1, traced: 0, until: None, max_time: None };
        let mut one = Ahead { effort, begun: 0 };
        assert_eq!(told(&mut one, CacheState::AsIs, 0, Phase::Untraced(0)), "");
        let mut many = ahead(u32::MAX, u32::MAX, None);
        many.begun = 3;
        assert!(many.begin(CacheState::Warm, 2, Phase::Untraced(2), Duration::MAX).contains("left"));
    }
}
