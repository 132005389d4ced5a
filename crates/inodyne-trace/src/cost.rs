//! What tracing costs while the command runs: for how long the kernel ran the programs, measured by the kernel itself in short windows.
//!
//! A loop of one cheap call ([`calibrate`](crate::calibrate)) finds everything in the CPU's caches. A command does not, and what a switch
//! costs depends on how deep the stacks are. So the kernel's own measurement of run times (`BPF_ENABLE_STATS`, bpf(2)) is on in windows, more
//! often at first and for one twentieth of the time later, and what it measures is divided by what the command did in that time. The first
//! window stands for itself alone: that is when stacks are seen for the first time and stored, and a switch costs several times as much as it
//! does later. What lies around a program, its tracepoint and the clock of that measurement, comes from the loop, which is also run with the
//! measurement on. The interrupts of the timer that samples are measured before the command begins, too.

use std::ops::{AddAssign, Sub};
use std::os::fd::OwnedFd;
use std::time::Duration;

use inodyne_launch::{monotonic_ns, own_cpu_time};
use inodyne_model::Nanos;
use inodyne_model::trace::Overhead;

use crate::attach::{Ran, measure_run_times};
use crate::kernel::Programs;

/// The minimum length of a window: it ends when it is looked at, about every 10 ms.
const WINDOW_NS: u64 = 5_000_000;
/// After the first window the next begins when so many times its length have passed; after each the gap doubles, up to the longest.
const FIRST_GAP: u64 = 3;
const LONGEST_GAP: u64 = 19;
/// For so long the kernel goes on measuring although nothing happens.
const IDLE_NS: u64 = 1_000_000_000;
/// Whatever was seen in windows less often than this does not tell what it costs.
const ENOUGH_CALLS: u64 = 200;
const ENOUGH_SWITCHES: u64 = 20;
/// Program runs for a thread that leaves its CPU, is woken and comes back, at most: where one replaces another, one run is for both.
const RUNS_PER_SWITCH: f64 = 3.0;

/// Runs of programs for a call: one where it is entered, and one where it returns; or two each.
pub fn runs_per_call() -> f64 {
    if Programs::here() == Programs::LoseCpu { 4.0 } else { 2.0 }
}

/// A call for which the kernel does more takes at least so many times as long as the cheapest.
const DIFFERS: f64 = 1.5;

/// What makes the kernel run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A system call.
    Call,
    /// A thread that leaves its CPU, is woken, or comes back.
    Switch,
    /// Anything else: births and ends, samples, requests to disks.
    Other,
}

impl Occasion {
    /// The occasion of the program with this name.
    pub fn of(program: &str) -> Occasion {
        match program.trim_end_matches("_again").trim_end_matches("_held") {
            "calls_enter" | "calls_exit" => Occasion::Call,
            "switches_switch" | "switches_waking" => Occasion::Switch,
            _ => Occasion::Other,
        }
    }
}

/// What programs and the command have done up to an instant; two subtracted say what happened in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// The instant.
    pub at_ns: u64,
    /// The programs of system calls, whoever makes them.
    pub at_calls: Ran,
    /// Those of switches.
    pub at_switches: Ran,
    /// All others.
    pub at_others: Ran,
    /// Calls that were counted.
    pub calls: u64,
    /// Returns to a CPU that were recorded.
    pub switches: u64,
}

impl Sub for Reading {
    type Output = Reading;

    fn sub(self, before: Reading) -> Reading {
        Reading {
            at_ns: self.at_ns.saturating_sub(before.at_ns),
            at_calls: self.at_calls - before.at_calls,
            at_switches: self.at_switches - before.at_switches,
            at_others: self.at_others - before.at_others,
            calls: self.calls.saturating_sub(before.calls),
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

impl AddAssign for Reading {
    fn add_assign(&mut self, more: Reading) {
        self.at_ns += more.at_ns;
        self.at_calls += more.at_calls;
        self.at_switches += more.at_switches;
        self.at_others += more.at_others;
        self.calls += more.calls;
        self.switches += more.switches;
    }
}

/// What was found before the command began, with calls in a loop: one that is cheap, unless another is named.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calibration {
    /// What tracing adds to that call.
    pub ns_per_call: f64,
    /// The same where that call is not timed; only for a live view, where there are such calls.
    pub ns_per_untimed_call: f64,
    /// What it adds around one run of a program, not counting the time that the kernel measures; negative where that is the larger.
    pub ns_around: f64,
    /// How long a program runs for a thread that is not followed.
    pub ns_not_followed: f64,
    /// How long the kernel takes for the cheap call and for the one for which it does more, and what tracing adds to the latter beyond the former,
    /// around the programs. `None` where that is not known.
    pub longer: Option<Longer>,
    /// What a sample takes from whatever runs, apart from its program; 0 where that is not known.
    pub ns_per_sample: f64,
}

/// What tracing adds around the programs of a call for which the kernel does more than for the cheapest.
#[derive(Debug, Clone, Copy)]
pub struct Longer {
    /// How long the cheap call takes without tracing, and how long the other one does.
    untraced_ns: [f64; 2],
    /// What tracing adds to the other one beyond what it adds to the cheap one.
    more_ns: f64,
}

impl Longer {
    /// `None` where the two calls hardly differ: the device file could not be opened.
    pub fn new(untraced_ns: [f64; 2], more_ns: f64) -> Option<Longer> {
        let [cheap, other] = untraced_ns;
        (other > cheap * DIFFERS).then(|| Longer { untraced_ns, more_ns: more_ns.max(0.0) })
    }

    /// The same for calls that take so long on average: in proportion up to that of the loop, and no more beyond it.
    fn of_calls(&self, mean_ns: f64) -> f64 {
        let [cheap, other] = self.untraced_ns;
        self.more_ns * ((mean_ns - cheap) / (other - cheap)).clamp(0.0, 1.0)
    }
}

impl Calibration {
    /// What tracing adds around the programs of a call, beyond what it adds to the cheap one, where calls take so long on a CPU on average.
    pub fn ns_more_around(&self, mean_ns: f64) -> f64 {
        self.longer.map_or(0.0, |longer| longer.of_calls(mean_ns))
    }

    /// What the programs cost per switch of a followed thread, given all their runs, for any thread, and the number of such switches.
    pub fn ns_per_switch(&self, ran: Ran, switches: u64) -> f64 {
        self.ns_per_event(ran, switches, RUNS_PER_SWITCH)
    }

    /// What the programs cost per call of a followed thread.
    fn ns_per_call(&self, ran: Ran, calls: u64) -> f64 {
        self.ns_per_event(ran, calls, runs_per_call())
    }

    /// Runs for threads that are not followed are not charged to those that are.
    fn ns_per_event(&self, ran: Ran, events: u64, each: f64) -> f64 {
        if events == 0 {
            return 0.0;
        }
        let events = events as f64;
        let each = each.min(ran.runs as f64 / events);
        let of_others = (ran.runs as f64 - events * each).max(0.0) * self.ns_not_followed;
        ((ran.ns as f64 - of_others) / events + self.ns_around * each).max(0.0)
    }
}

/// What tracing costs, as far as it is known yet.
pub struct Cost {
    calibration: Calibration,
    /// The open window, if there is one, and the descriptor that has the kernel measure.
    window: Option<(Reading, OwnedFd)>,
    windows: Windows,
    next_ns: u64,
    gap: u64,
    created_ns: u64,
    /// When the first window began in which something happened; what came before was no part of the command.
    began: Reading,
    /// CPU time of this process when it first looked: starting the command is no part of tracing.
    own: Option<Duration>,
}

impl Cost {
    /// Begins with a window if `window` has the kernel measuring; otherwise there will be none.
    pub fn new(calibration: Calibration, window: Option<OwnedFd>, now: Reading) -> Cost {
        let next_ns = if window.is_some() { 0 } else { u64::MAX };
        let window = window.map(|descriptor| (now, descriptor));
        Cost {
            calibration,
            window,
            windows: Windows::default(),
            next_ns,
            gap: FIRST_GAP,
            created_ns: now.at_ns,
            began: now,
            own: None,
        }
    }

    /// Opens or closes a window when it is time to. To be called every few milliseconds.
    pub fn look(&mut self, now: impl FnOnce() -> Reading) {
        let at_ns = monotonic_ns().0;
        self.own.get_or_insert_with(own_cpu_time);
        match &self.window {
            Some((began, _)) if at_ns >= began.at_ns + WINDOW_NS => self.close(now()),
            None if at_ns >= self.next_ns => match measure_run_times() {
                Some(descriptor) => self.window = Some((now(), descriptor)),
                None => self.next_ns = u64::MAX,
            },
            _ => {}
        }
    }

    /// Stops measuring: from now on not everything is recorded, and tracing costs less than before.
    pub fn stop(&mut self, now: impl FnOnce() -> Reading) {
        if self.window.is_some() {
            self.close(now());
        }
        self.window = None;
        self.next_ns = u64::MAX;
    }

    fn close(&mut self, now: Reading) {
        let Some((began, descriptor)) = self.window.take() else { return };
        let in_window = now - began;
        let is_first = self.windows.first.at_ns == 0;
        // The command has not begun yet, or those that were joined do nothing.
        if is_first && in_window.calls + in_window.switches == 0 {
            self.began = now;
            if now.at_ns < self.created_ns + IDLE_NS {
                self.window = Some((now, descriptor));
            } else {
                self.next_ns = now.at_ns + in_window.at_ns * LONGEST_GAP;
            }
            return;
        }
        self.windows.add(in_window);
        self.next_ns = now.at_ns + in_window.at_ns * self.gap;
        self.gap = (2 * self.gap).min(LONGEST_GAP);
    }

    /// The cost, at the end.
    pub fn finish(mut self, now: Reading) -> Overhead {
        self.close(now);
        let spent = self.own.map_or(Duration::ZERO, |before| own_cpu_time().saturating_sub(before));
        let reader_ns = Nanos(spent.as_nanos() as u64);
        Overhead { reader_ns, ..self.windows.overhead(&self.calibration, &(now - self.began)) }
    }
}

/// What was seen in windows.
#[derive(Default)]
struct Windows {
    /// In the first, when much happens for the first time.
    first: Reading,
    /// In all others together.
    later: Reading,
}

impl Windows {
    fn add(&mut self, window: Reading) {
        match self.first.at_ns {
            0 => self.first = window,
            _ => self.later += window,
        }
    }

    /// What tracing costs, given all that the command did from the first window on.
    fn overhead(&self, calibration: &Calibration, whole: &Reading) -> Overhead {
        let calls = |seen: &Reading| seen.calls;
        let per_call = |seen: &Reading| calibration.ns_per_call(seen.at_calls, seen.calls);
        let switches = |seen: &Reading| seen.switches;
        let per_switch = |seen: &Reading| calibration.ns_per_switch(seen.at_switches, seen.switches);
        let others = |seen: &Reading| {
            let Ran { ns, runs } = seen.at_others;
            (ns as f64 + calibration.ns_around * runs as f64).max(0.0) / (seen.at_ns as f64).max(1.0)
        };
        // A command may be over before a window is.
        let per_ns = self.mean(whole, WINDOW_NS, |seen| seen.at_ns, others).unwrap_or_else(|| others(&self.both()));
        Overhead {
            ratio: 1.0,
            estimated: true,
            ns_per_call: self.mean(whole, ENOUGH_CALLS, calls, per_call).unwrap_or(calibration.ns_per_call),
            ns_per_switch: self.mean(whole, ENOUGH_SWITCHES, switches, per_switch),
            other_ns: Nanos((per_ns * whole.at_ns as f64) as u64),
            reader_ns: Nanos::ZERO,
            at_least: false,
        }
    }

    fn both(&self) -> Reading {
        let mut both = self.first;
        both += self.later;
        both
    }

    /// What something cost each time in the whole run: as much as in the first window where it was seen there, and as much as in the later ones
    /// everywhere else. Where one of these saw it less often than `enough`, both together tell; `None` if they did not either.
    fn mean(
        &self,
        whole: &Reading,
        enough: u64,
        count: impl Fn(&Reading) -> u64,
        cost: impl Fn(&Reading) -> f64,
    ) -> Option<f64> {
        let [of_first, of_later] = [&self.first, &self.later].map(&count);
        if of_first >= enough && of_later >= enough {
            let (of_first, all) = (of_first as f64, count(whole).max(of_first + of_later) as f64);
            return Some((cost(&self.first) * of_first + cost(&self.later) * (all - of_first)) / all);
        }
        let both = self.both();
        (count(&both) >= enough).then(|| cost(&both))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATION: Calibration = Calibration {
        ns_per_call: 120.0,
        ns_per_untimed_call: 0.0,
        ns_around: 20.0,
        ns_not_followed: 15.0,
        longer: Some(Longer { untraced_ns: [100.0, 600.0], more_ns: 80.0 }),
        ns_per_sample: 0.0,
    };

    fn seen(calls: u64, switches: u64) -> Reading {
        Reading {
            at_ns: 10_000_000,
            at_calls: Ran { ns: calls * 300 + 1_000 * 15, runs: calls * 2 + 1_000 },
            at_switches: Ran { ns: switches * 900 + 500 * 15, runs: switches * 3 + 500 },
            at_others: Ran { ns: 10_000, runs: 10 },
            calls,
            switches,
        }
    }

    #[test]
    fn a_call_and_a_switch_cost_what_their_programs_ran_and_what_lies_around_them() {
        let whole = Reading { at_ns: 200_000_000, calls: 20_000, switches: 2_000, ..Reading::default() };
        let overhead = Windows { first: seen(1_000, 100), ..Windows::default() }.overhead(&CALIBRATION, &whole);
        assert_eq!((overhead.ns_per_call.round(), overhead.ns_per_switch.map(f64::round)), (340.0, Some(960.0)));
        // Ten runs of a microsecond in a twentieth of the time.
        assert_eq!(overhead.other_ns, Nanos(20 * (10_000 + 200)));
    }

    #[test]
    fn the_first_window_stands_for_itself_where_later_ones_tell_of_the_rest() {
        let slow = |ran: Ran| Ran { ns: ran.ns * 5, ..ran };
        let later = seen(1_000, 100);
        let first = Reading { at_switches: slow(later.at_switches), at_others: slow(later.at_others), ..later };
        let whole = Reading { at_ns: 200_000_000, calls: 20_000, switches: 1_000, ..Reading::default() };
        let overhead = |windows: Windows| windows.overhead(&CALIBRATION, &whole);
        let [like_first, like_later] = [first, later].map(|first| overhead(Windows { first, ..Windows::default() }));
        let both = overhead(Windows { first, later });
        let [of_first, of_later, of_both] = [like_first, like_later, both].map(|one| one.ns_per_switch.unwrap());
        assert!((of_both - (0.1 * of_first + 0.9 * of_later)).abs() < 1e-6, "{of_first} {of_later} {of_both}");
        assert_eq!((both.ns_per_call.round(), both.other_ns), (340.0, Nanos(50_200 + 19 * (10_000 + 200))));
        // Later ones that hardly saw any do not tell what one costs.
        let hardly = Reading { switches: 5, ..later };
        let together = overhead(Windows { first, later: hardly }).ns_per_switch.unwrap();
        assert!((of_first / 2.0..of_first * 1.3).contains(&together), "{together} {of_first}");
        let short = Reading { at_ns: 2_000_000, ..Reading::default() };
        let over = Windows { first: Reading { at_ns: 1_000_000, ..later }, ..Windows::default() };
        assert_eq!(over.overhead(&CALIBRATION, &short).other_ns, Nanos(2 * (10_000 + 200)));
        let sliver = Reading { at_ns: 1_000, ..later };
        assert!(overhead(Windows { first, later: sliver }).other_ns.0 < 2 * like_first.other_ns.0);
    }

    #[test]
    fn tracing_adds_more_to_calls_for_which_the_kernel_does_more() {
        let more = [0.0, 100.0, 350.0, 600.0, 5_000.0].map(|mean| CALIBRATION.ns_more_around(mean));
        assert_eq!(more, [0.0, 0.0, 40.0, 80.0, 80.0]);
        assert_eq!(Calibration::default().ns_more_around(1_000.0), 0.0);
        assert!(Longer::new([100.0, 140.0], 80.0).is_none() && Longer::new([100.0, 200.0], 80.0).is_some());
    }

    #[test]
    fn what_runs_for_others_is_no_part_of_a_switch_of_those_who_are_followed() {
        let own = Ran { ns: 10 * 900, runs: 10 * 3 };
        let others = Ran { ns: 100_000 * 15, runs: 100_000 };
        let mut everybody = own;
        everybody += others;
        let [alone, beside] = [own, everybody].map(|ran| CALIBRATION.ns_per_switch(ran, 10));
        assert!((alone - 960.0).abs() < 1e-6 && (beside - alone).abs() < 1e-6, "{alone} {beside}");
        assert_eq!(CALIBRATION.ns_per_switch(everybody, 0), 0.0, "nobody has paid");
    }

    #[test]
    fn what_was_hardly_seen_costs_as_much_as_in_the_loop_or_is_not_known() {
        let whole = Reading { at_ns: 10_000_000, ..Reading::default() };
        let overhead = Windows { first: seen(100, 10), ..Windows::default() }.overhead(&CALIBRATION, &whole);
        assert_eq!((overhead.ns_per_call, overhead.ns_per_switch), (120.0, None));
        let nothing = Windows::default().overhead(&CALIBRATION, &whole);
        assert_eq!((nothing.ns_per_call, nothing.ns_per_switch, nothing.other_ns), (120.0, None, Nanos::ZERO));
    }
}
