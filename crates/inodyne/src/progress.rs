//! What is reported while an experiment runs: on a terminal, a line that disappears at the end, with the block, how long the rest may
//! take, and how many calls a second a traced command makes; everywhere, what a user must know.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use inodyne_experiment::event::Fate;
use inodyne_experiment::{Event, Observer, Phase, Repetitions};
use inodyne_launch::Output;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;
use inodyne_recording::file::is_replaced;
use inodyne_render::escaped;

/// Reports on an experiment on standard error, and saves what was measured to a file.
pub struct Terminal {
    bar: ProgressBar,
    eta: Eta,
    /// What the line says about the block.
    block: String,
    /// Where what was measured so far is kept: none for a pipe, which would have one recording after the other, the first one unfinished.
    file: Option<PathBuf>,
    /// Whether the user was told that the file cannot be written.
    has_warned: bool,
}

impl Terminal {
    /// A line would be lost among the output of a command on the same terminal: then there is none.
    pub fn new(output: Output, file: Option<&Path>) -> Terminal {
        let stdout_is_ours = output == Output::Discard || !std::io::stdout().is_terminal();
        let shows = std::io::stderr().is_terminal() && stdout_is_ours;
        let bar = if shows { ProgressBar::no_length() } else { ProgressBar::hidden() };
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
        Terminal {
            bar,
            eta: Eta::new(Repetitions::default()),
            block: String::new(),
            file: file.filter(|file| is_replaced(file)).map(Path::to_owned),
            has_warned: false,
        }
    }

    fn line(&self, text: String) {
        self.bar.set_message(text);
        self.bar.tick();
    }

    fn say(&self, text: std::fmt::Arguments<'_>) {
        self.bar.suspend(|| crate::say::say!("inodyne: {text}"));
    }
}

impl Observer for Terminal {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::PlaceStarted { place, again: false } => self.line(format!("making {}", escaped(&place.name()))),
            Event::DataLeftOut { count } => {
                self.say(format_args!("left out of the data: {count} devices, sockets or pipes"));
            }
            Event::PlaceNote { place, note } => self.say(format_args!("{}: {note}", escaped(place))),
            Event::Started { repetitions } => {
                self.eta = Eta::new(*repetitions);
                self.line(String::new());
            }
            Event::BlockStarted { cache, later_groups, phase, elapsed } => {
                self.block = self.eta.begin(*cache, *later_groups, *phase, *elapsed);
                self.line(self.block.clone());
            }
            Event::StraceInstead { reason } => self.say(format_args!("{reason}; strace is used instead")),
            Event::Running { elapsed, calls_per_s } => {
                let separator = if self.block.is_empty() { "" } else { ", " };
                let (block, elapsed) = (&self.block, elapsed.as_secs_f64());
                let rate = HumanCount(*calls_per_s as u64);
                self.line(format!("{block}{separator}{elapsed:.1} s, {rate} calls a second"));
            }
            Event::RunFinished { .. } => self.line(self.block.clone()),
            Event::TimedOut { timeout } => {
                self.say(format_args!("a run was killed after {timeout:?}, as --timeout says"));
            }
            Event::NotDurable { error } => self.say(format_args!("{error}: when the run was durable is not known")),
            Event::LeftRunning { count, fate } => {
                let fate = match fate {
                    Fate::TimedOut => "killed",
                    Fate::Killed => "killed, since the place is gone now",
                    Fate::Left => "they run on, untraced",
                };
                self.say(format_args!("processes that the command left running: {count} ({fate})"));
            }
            Event::Finished => self.bar.finish_and_clear(),
            Event::PlaceStarted { .. } | Event::RunStarted { .. } | Event::Interrupted => {}
        }
    }

    fn keep(&mut self, recording: &Recording) {
        let saved = self.file.as_ref().map(|file| inodyne_recording::save(recording, file));
        if let Some(Err(error)) = saved
            && !std::mem::replace(&mut self.has_warned, true)
        {
            self.say(format_args!("{}: what is measured is kept in memory until the end", escaped(&error.to_string())));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How many blocks are still to come. Pure.
struct Eta {
    repetitions: Repetitions,
    /// Blocks so far, of all kinds.
    begun: u32,
}

impl Eta {
    fn new(repetitions: Repetitions) -> Eta {
        Eta { repetitions, begun: 0 }
    }

    /// What is said when a block begins after `elapsed`, in this state of the caches, with `later_groups` more groups to come after it.
    fn begin(&mut self, cache: Option<CacheState>, later_groups: u32, phase: Phase, elapsed: Duration) -> String {
        let prefix = cache.map_or_else(String::new, |cache| format!("{cache}: "));
        let Repetitions { warmup, untraced, traced, until, max_time } = self.repetitions;
        let before = self.begun;
        self.begun = before.saturating_add(1);
        // Of this group: blocks that a time limit may cut short, and others, like the first traced one.
        let (first_traced, more_traced) = (traced.min(1), traced.saturating_sub(1));
        let timed = untraced.saturating_add(more_traced);
        let (cut, others, what) = match phase {
            Phase::WarmUp(block) => (timed, (warmup - block).saturating_add(first_traced), "warming up".to_owned()),
            Phase::Untraced(block) if block >= untraced => {
                return format!("{prefix}block {}, until the interval is narrow enough", block + 1);
            }
            Phase::Untraced(block) => (timed - block, first_traced, format!("block {} of {untraced}", block + 1)),
            Phase::Traced(block) => {
                let what = format!("traced block {} of {traced}", block + 1);
                if block == 0 { (more_traced, 1, what) } else { (traced - block, 0, what) }
            }
        };
        let cut = cut.saturating_add(timed.saturating_mul(later_groups));
        let others = others.saturating_add(warmup.saturating_add(first_traced).saturating_mul(later_groups));
        if before == 0 && cut.saturating_add(others) < 2 && until.is_none() {
            return String::new();
        }
        let Some(each) = elapsed.checked_div(before) else { return format!("{prefix}{what}") };
        let kept = max_time.map_or(Duration::MAX, |most| most.saturating_sub(elapsed));
        let left = each.saturating_mul(cut).min(kept).saturating_add(each.saturating_mul(others));
        format!("{prefix}{what}, about {} left", HumanDuration(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eta(untraced: u32, traced: u32, max_time: Option<u64>) -> Eta {
        let max_time = max_time.map(Duration::from_secs);
        Eta::new(Repetitions { warmup: 1, untraced, traced, until: None, max_time })
    }

    /// Every block takes ten seconds.
    fn told(eta: &mut Eta, cache: CacheState, later_groups: u32, phase: Phase) -> String {
        let elapsed = Duration::from_secs(10) * eta.begun;
        eta.begin(Some(cache), later_groups, phase, elapsed)
    }

    #[test]
    fn what_is_left_is_that_of_all_states_of_the_caches() {
        let mut eta = eta(2, 1, None);
        let phases = [Phase::WarmUp(0), Phase::Untraced(0), Phase::Untraced(1), Phase::Traced(0)];
        let all: Vec<String> = [(CacheState::Cold, 1), (CacheState::Warm, 0)]
            .into_iter()
            .flat_map(|(cache, later)| phases.map(|phase| (cache, later, phase)))
            .map(|(cache, later, phase)| told(&mut eta, cache, later, phase))
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
    fn a_time_to_keep_cuts_blocks_short_but_for_the_first_traced_one() {
        let mut eta = eta(1000, 10, Some(25));
        let phases = [Phase::WarmUp(0), Phase::Untraced(0), Phase::Untraced(1), Phase::Traced(0)];
        let all = phases.map(|phase| told(&mut eta, CacheState::Cold, 0, phase));
        let expected = [
            "cold: warming up",
            "cold: block 1 of 1000, about 25 seconds left",
            "cold: block 2 of 1000, about 15 seconds left",
            "cold: traced block 1 of 10, about 10 seconds left",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn of_one_block_nothing_is_said_and_nothing_overflows() {
        let mut one = Eta::new(Repetitions { untraced: 1, ..Repetitions::default() });
        assert_eq!(told(&mut one, CacheState::AsIs, 0, Phase::Untraced(0)), "");
        let mut many = eta(u32::MAX, u32::MAX, None);
        many.begun = 3;
        assert!(many.begin(Some(CacheState::Warm), 2, Phase::Untraced(2), Duration::MAX).contains("left"));
    }
}
