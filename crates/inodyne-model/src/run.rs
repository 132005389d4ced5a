//! One execution of one command in one place: how it ended, what it took. What is executed is a [`crate::command`].

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// The state of the caches before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// Nothing was done.
    #[default]
    AsIs,
    /// The command ran once before, unmeasured, or the tree was read.
    Warm,
    /// Nothing of the place was in memory.
    Cold,
}

impl std::fmt::Display for CacheState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            CacheState::AsIs => "as is",
            CacheState::Warm => "warm",
            CacheState::Cold => "cold",
        })
    }
}

/// Which of the sets of settings that were tried: 0 is what the place came with.
pub type SettingsIndex = usize;

/// Whether settings are those that the place came with, which recordings leave out.
pub(crate) fn is_default(settings: &SettingsIndex) -> bool {
    *settings == 0
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It returned this code, 0 to 255.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl Default for Exit {
    /// Success.
    fn default() -> Exit {
        Exit::Code(0)
    }
}

/// Signals by name, with their numbers on x86-64 and arm64 (signal(7)): those that end a process that does not expect them.
const SIGNALS: [(&str, i32); 23] = [
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGTRAP", 5),
    ("SIGABRT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGUSR1", 10),
    ("SIGSEGV", 11),
    ("SIGUSR2", 12),
    ("SIGPIPE", 13),
    ("SIGALRM", 14),
    ("SIGTERM", 15),
    ("SIGSTKFLT", 16),
    ("SIGXCPU", 24),
    ("SIGXFSZ", 25),
    ("SIGVTALRM", 26),
    ("SIGPROF", 27),
    ("SIGIO", 29),
    ("SIGPWR", 30),
    ("SIGSYS", 31),
];

/// Real-time signals, which have no names of their own (signal(7)).
const FIRST_REAL_TIME: i32 = 32;
const LAST_REAL_TIME: i32 = 64;

impl std::fmt::Display for Exit {
    /// `3`, `SIGKILL`, `signal 40`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |signal| SIGNALS.iter().find(|(_, number)| *number == signal).map(|(name, _)| *name);
        match *self {
            Exit::Code(code) => write!(f, "{code}"),
            Exit::Signal(signal) => match name(signal) {
                Some(name) => f.write_str(name),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

impl Exit {
    /// From a status as `wait(2)` gives it: the signal in the lowest seven bits, or the code in the next eight (bits 8 to 15).
    pub fn of_status(status: u32) -> Exit {
        match status & 0x7f {
            0 => Exit::Code((status >> 8 & 0xff) as i32),
            signal => Exit::Signal(signal as i32),
        }
    }

    /// Killed by the signal of this name, real-time signals as strace names them; signal 0 for those that do not end anything.
    pub fn of_signal(name: &str) -> Exit {
        let known = SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
        Exit::Signal(known.or_else(|| real_time(name)).unwrap_or(0))
    }

    /// True for a code of zero.
    pub fn success(self) -> bool {
        self == Exit::Code(0)
    }

    /// The code a shell would report: the code itself, or 128 + signal.
    pub fn shell_code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            // A damaged recording may hold any number.
            Exit::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// `SIGRT_2`, counted from the kernel's first real-time signal (strace, signal.c).
fn real_time(name: &str) -> Option<i32> {
    match name {
        "SIGRTMIN" => Some(FIRST_REAL_TIME),
        "SIGRTMAX" => Some(LAST_REAL_TIME),
        _ => {
            let after: i32 = name.strip_prefix("SIGRT_")?.parse().ok()?;
            FIRST_REAL_TIME.checked_add(after).filter(|signal| (FIRST_REAL_TIME..=LAST_REAL_TIME).contains(signal))
        }
    }
}

/// What a command used, including all its children that were waited for: as accounted by `wait4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_ns: Nanos,
    /// CPU time in the kernel.
    pub sys_ns: Nanos,
    /// How often it gave up the CPU because it had to wait.
    pub voluntary_switches: u64,
    /// How often the CPU was taken from it.
    pub involuntary_switches: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
    /// Largest resident set of any of its processes, in bytes.
    pub max_rss_bytes: u64,
}

impl Usage {
    /// What was used after `before`, by the same process; the largest resident set stays as it is.
    pub fn since(&self, before: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            sys_ns: self.sys_ns.saturating_sub(before.sys_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(before.involuntary_switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            max_rss_bytes: self.max_rss_bytes,
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// Index into the recording's places.
    pub place: usize,
    /// Index into the recording's commands.
    pub command: usize,
    /// State of the caches beforehand.
    pub cache: CacheState,
    /// Which settings were in force.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settings: SettingsIndex,
    /// Which block of the schedule it belongs to.
    pub block: u32,
    /// Whether it was traced.
    pub traced: bool,
    /// From the release of the command to its end, as its parent sees it.
    pub wall_ns: Nanos,
    /// From the release until everything that the place's file system held in memory was on its device: the end, and a
    /// flush right after it. Where it was asked for, and for untraced runs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_ns: Option<Nanos>,
    /// The number that was read from what it printed: above 0, in a unit of its own. Where it was asked for, and for untraced runs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// What it used.
    #[serde(flatten)]
    pub usage: Usage,
    /// Bytes read from the place's device during the run, where it has one: how cold it really was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_read_bytes: Option<u64>,
    /// Bytes written to the place's device during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_write_bytes: Option<u64>,
    /// How it ended.
    pub exit: Exit,
}

/// The median of values in ascending order: for an even number, the midpoint of the two middle ones. None if there are none.
pub fn median(sorted: &[Nanos]) -> Option<Nanos> {
    let (lower, upper) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(Nanos(lower.0.midpoint(upper.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_code_or_a_signal() {
        let said = |status| Exit::of_status(status).to_string();
        assert_eq!([0, 3 << 8, 255 << 8].map(said), ["0", "3", "255"]);
        // With a core dump, and a signal without a name here.
        assert_eq!([9, 11 | 0x80, 40].map(said), ["SIGKILL", "SIGSEGV", "signal 40"]);
        assert_eq!([Exit::of_signal("SIGTERM"), Exit::of_signal("SIGCHLD")], [Exit::Signal(15), Exit::Signal(0)]);
    }

    #[test]
    fn real_time_signals_have_numbers_for_names() {
        let names = ["SIGRTMIN", "SIGRT_2", "SIGRTMAX", "SIGRT_33", "SIGRT_-1", "SIGRT_x"];
        let expected = [32, 34, 64, 0, 0, 0].map(Exit::Signal);
        assert_eq!(names.map(Exit::of_signal), expected);
    }

    #[test]
    fn any_signal_has_a_code() {
        assert_eq!(
            [9, i32::MAX, i32::MIN].map(|signal| Exit::Signal(signal).shell_code()),
            [137, i32::MAX, i32::MIN + 128]
        );
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let of = |values: &[u64]| median(&values.iter().map(|n| Nanos(*n)).collect::<Vec<_>>());
        assert_eq!(
            [of(&[]), of(&[5]), of(&[5, 8]), of(&[1, 5, 9])],
            [None, Some(Nanos(5)), Some(Nanos(6)), Some(Nanos(5))]
        );
    }
}
