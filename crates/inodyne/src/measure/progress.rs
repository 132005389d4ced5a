//! What a terminal shows meanwhile: which block it is; and of a command, how long it runs and how many calls a second.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use inodyne_model::run::CacheState;

/// A short command shows nothing.
const FIRST_AFTER: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(500);

/// Which block runs, and how long the rest may take: a line that is gone at the end. Nothing for a single block.
pub struct Schedule {
    bar: ProgressBar,
    begun: Instant,
}

impl Schedule {
    /// Shows nothing at all where `quiet`.
    pub fn start(quiet: bool) -> Schedule {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::no_length() };
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
        Schedule { bar, begun: Instant::now() }
    }

    /// A block begins. `blocks` of this state of the caches are certain.
    pub fn block(&self, cache: CacheState, block: u32, blocks: u32) {
        if blocks < 2 {
            return;
        }
        let left = match block {
            0 => String::new(),
            _ if block >= blocks => ", until the interval is narrow enough".to_owned(),
            _ => {
                let each = self.begun.elapsed() / block;
                format!(", about {} left", HumanDuration(each * (blocks - block)))
            }
        };
        self.bar.set_message(format!("{cache}: block {} of {}{left}", block + 1, blocks.max(block + 1)));
        self.bar.tick();
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
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
