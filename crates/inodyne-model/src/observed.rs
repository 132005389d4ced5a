//! What the kernel side saw of one run, before any explanation.
//!
//! These are sums and tables as they were collected, with stacks already turned into names, so that a recording can
//! be explained again on another machine. `inodyne-analyse` reads this and nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::column;
use crate::run::Exit;
use crate::stack::{Stack, StackId};

/// A thread's number within a trace: 1, 2, 3 … in the order of creation. Unlike a thread id, it is never reused.
/// Where the command was launched, its first thread is [`ROOT`].
pub type ThreadNumber = u32;

/// The number of the first thread of a command that inodyne launched; meaningless where it attached.
pub const ROOT: ThreadNumber = 1;

/// Why a trace begins where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Begin {
    /// inodyne started the command: nothing of it happened before. Its first thread is number [`ROOT`].
    #[default]
    Launched,
    /// Running processes were joined: what they did before is not known, and none of them is the root of the others.
    Attached,
}

/// Why a trace ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The command's process exited or was killed.
    #[default]
    Exit,
    /// The time allotted for watching was over, or the user had seen enough.
    Detached,
    /// The recording was made while the trace was still going on.
    StillRunning,
}

/// The stretch of time that a trace covers: from [`Observed::started_ns`] to the end of its last thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Window {
    /// Why it begins there.
    #[serde(default)]
    pub begin: Begin,
    /// Why it ends there.
    #[serde(default)]
    pub end: End,
}

impl Window {
    /// True for the whole life of a command that inodyne started, which is what all traces in older recordings are.
    pub fn is_whole_life(&self) -> bool {
        *self == Window::default()
    }
}

/// Everything the kernel side saw, except the table of calls (see [`crate::trace::Trace::by_comm`]).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Observed {
    /// What the trace covers; left out for the whole life of a command.
    #[serde(default, skip_serializing_if = "Window::is_whole_life")]
    pub window: Window,
    /// The window's beginning, on the monotonic clock. Where the command was launched: entry of its `execve`.
    pub started_ns: Nanos,
    /// All threads, in the order of their numbers.
    pub threads: Vec<ThreadObserved>,
    /// Programs executed, in order.
    pub programs: Vec<Program>,
    /// Waits, summed by thread, call, stack and waker.
    pub waits: Vec<Wait>,
    /// On-CPU samples, summed by thread, call, mode and stacks.
    pub samples: Vec<Sample>,
    /// Where in the program threads were blocked, one sample for each period at the same rate. Empty in older recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_samples: Vec<BlockedSample>,
    /// On-CPU samples of helpers, without their user-mode stacks. Empty in older recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helper_samples: Vec<Sample>,
    /// Sampling rate per CPU in hertz; 0 where sampling was off.
    pub sample_hz: u32,
    /// Every stack named by the other tables.
    pub stacks: Vec<Stack>,
    /// Every time a thread was off the CPU, ordered by when it returned.
    pub timeline: Timeline,
    /// What threads did between two instants at which something else depended on them. Empty in older recordings.
    #[serde(default, skip_serializing_if = "Work::is_empty")]
    pub work: Work,
    /// The control groups (version 2) of those that it began with, except for the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<String>,
    /// Threads that are not the command's but were seen to be waited for. Their numbers follow those of the threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<Helper>,
}

impl Observed {
    /// The first thread of the command that inodyne started, the end of whose process is the end of the window; none where the
    /// threads were joined while they ran.
    pub fn root(&self) -> Option<&ThreadObserved> {
        let is_root = |thread: &&ThreadObserved| self.window.begin == Begin::Launched && thread.number == ROOT;
        self.threads.iter().find(is_root)
    }
}

/// A thread of another process or of the kernel that made one of the command's threads ready, or was asked for something over a
/// socket, or was created by one that was; followed from then on: its intervals are in the timeline, its work in [`Work`], its samples in
/// [`Observed::helper_samples`], and it is in no other table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Helper {
    /// Its number in this trace.
    pub number: ThreadNumber,
    /// Process id; 0 for a kernel thread that has none of its own.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Its command name when it was first seen, or the last one that it took.
    pub comm: String,
    /// The control group (version 2) that it was in then, where it belonged to a process and was not in the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// When it was first seen; what it did before is not known.
    pub adopted_ns: Nanos,
    /// Its end, or that of the trace.
    pub ended_ns: Nanos,
    /// True for a kernel thread: it never runs in user mode.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel_thread: bool,
    /// True for one that was asked for something over a socket, and for what it created: it works for the command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server: bool,
    /// The helper that created it, where it was followed from its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ThreadNumber>,
}

/// What one thread did in its lifetime. `user + kernel + runqueue + blocked = ended - born`, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadObserved {
    /// Its number in this trace.
    pub number: ThreadNumber,
    /// The number of the thread that created it; 0 for the root, and for those that were joined while they ran.
    pub parent: ThreadNumber,
    /// Process id (the kernel's tgid), as seen from the initial pid namespace.
    pub pid: u32,
    /// Thread id (the kernel's pid).
    pub tid: u32,
    /// Its last command name.
    pub comm: String,
    /// Its creation (for the root: entry of `execve`), or when following it began, where it was joined while it ran.
    pub born_ns: Nanos,
    /// Its last instant on a CPU, or the end of the trace.
    pub ended_ns: Nanos,
    /// True where it was still alive when the trace ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alive: bool,
    /// On a CPU outside of system calls: user mode, but also page faults and interrupts (split by samples later).
    pub user_ns: Nanos,
    /// On a CPU in system calls, by call.
    pub kernel_ns: BTreeMap<String, Nanos>,
    /// Ready, without a CPU.
    pub runqueue_ns: Nanos,
    /// Not able to run. The [`Wait`]s of the thread sum to it, less what [`crate::loss::Lost::waits`] counts.
    pub blocked_ns: Nanos,
    /// CPU time by the scheduler's own account (`sum_exec_runtime`), over the same lifetime.
    pub scheduler_cpu_ns: Nanos,
    /// Times it left the CPU because it had to wait.
    pub waits: u64,
    /// Times the CPU was taken from it.
    pub preemptions: u64,
    /// How its process ended, given for one of its threads: the last, or in an strace log the first. None for the others, and where it was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_exit: Option<Exit>,
}

impl ThreadObserved {
    /// From creation to end.
    pub fn lifetime_ns(&self) -> Nanos {
        self.ended_ns.saturating_sub(self.born_ns)
    }

    /// On a CPU, by our account.
    pub fn cpu_ns(&self) -> Nanos {
        self.user_ns + self.kernel_ns.values().copied().sum()
    }

    /// How often it left its CPU, to wait or because it was taken from it.
    pub fn switches(&self) -> u64 {
        self.waits.saturating_add(self.preemptions)
    }
}

/// A successful `execve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The thread that executed it.
    pub thread: ThreadNumber,
    /// Its process id.
    pub pid: u32,
    /// When.
    pub at_ns: Nanos,
    /// The file's name as given to the kernel.
    pub file: String,
    /// The argument words, as far as they fit (see `args_truncated`).
    pub args: Vec<String>,
    /// True where there were more or longer arguments than could be kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub args_truncated: bool,
}

/// Who made a blocked thread ready again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waker {
    /// A thread of the traced command.
    Traced,
    /// A thread of another process.
    OtherProcess,
    /// A kernel thread (journal, writeback, worker).
    KernelThread,
    /// An interrupt or a timer; the thread it interrupted has nothing to do with it.
    Interrupt,
    /// It was not seen.
    Unknown,
}

/// Waits of one thread in one call at one place in the kernel, ended by one kind of waker at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Who waited.
    pub thread: ThreadNumber,
    /// In which call; none outside of calls (a page fault, a stop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
    /// Where it waited.
    pub stack: StackId,
    /// Who ended it.
    pub waker: Waker,
    /// Where the waker was.
    pub waker_stack: StackId,
    /// Total time blocked: from leaving the CPU to the wake-up.
    pub ns: Nanos,
    /// How often.
    pub count: u64,
    /// The longest of them.
    pub max_ns: Nanos,
    /// True where it was under way when the window began: its time before that is not included.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub began_before: bool,
}

/// On-CPU samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Who ran.
    pub thread: ThreadNumber,
    /// In which call; none outside of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
    /// True where the CPU was in user mode.
    pub user_mode: bool,
    /// The kernel stack; zero in user mode.
    pub stack: StackId,
    /// The user-mode stack; where the CPU was in the kernel, the one that the kernel was entered from. Zero where there is none.
    #[serde(default, skip_serializing_if = "StackId::is_none")]
    pub user_stack: StackId,
    /// How many samples.
    pub count: u64,
}

/// Samples of time blocked in a call, taken when it ended: the user-mode stack. Where in the kernel it was is known for each
/// [`Wait`] in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedSample {
    /// Who was blocked.
    pub thread: ThreadNumber,
    /// In which call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
    /// From where it was called; zero where that could not be taken.
    #[serde(default, skip_serializing_if = "StackId::is_none")]
    pub user_stack: StackId,
    /// How many samples.
    pub count: u64,
}

/// Off-CPU intervals, one column per field; all columns have the same length.
///
/// A thread is off the CPU from `out` to `in`. It was blocked until `wake` and ready from then on; where the CPU was taken from it, it
/// was ready all the time (`wake` = `out`) and has no stack. One that was blocked has none where it could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Whose interval.
    #[serde(deserialize_with = "column::read")]
    pub thread: Vec<ThreadNumber>,
    /// Left the CPU, nanoseconds after [`Observed::started_ns`].
    #[serde(deserialize_with = "column::read")]
    pub out_ns: Vec<u64>,
    /// From leaving the CPU to the wake-up.
    #[serde(deserialize_with = "column::read")]
    pub blocked_ns: Vec<u64>,
    /// From the wake-up to the return to a CPU.
    #[serde(deserialize_with = "column::read")]
    pub ready_ns: Vec<u64>,
    /// The call it was in: an index into `calls`.
    #[serde(deserialize_with = "column::read")]
    pub call: Vec<u32>,
    /// Where it waited: an index into `stacks`.
    #[serde(deserialize_with = "column::read")]
    pub stack: Vec<u32>,
    /// Who made it ready.
    #[serde(deserialize_with = "column::read")]
    pub waker: Vec<Waker>,
    /// The thread id of the waker; meaningless for interrupts.
    #[serde(deserialize_with = "column::read")]
    pub waker_tid: Vec<u32>,
    /// The number of the waker, where it was followed; 0 where not. For interrupts, the thread that was interrupted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "column::read")]
    pub waker_thread: Vec<ThreadNumber>,
    /// Where the waker was: an index into `stacks`.
    #[serde(deserialize_with = "column::read")]
    pub waker_stack: Vec<u32>,
    /// Names of calls; the empty one stands for "outside of calls".
    pub calls: Vec<String>,
    /// Identities of stacks; zero stands for "none".
    pub stacks: Vec<StackId>,
    /// Until when it is complete, nanoseconds after [`Observed::started_ns`], where it had no room for what began later. Everything that
    /// began before is in it as a whole; pieces of work are in it if they ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
}

impl Timeline {
    /// How many intervals it holds.
    pub fn len(&self) -> usize {
        self.thread.len()
    }

    /// True where it holds none.
    pub fn is_empty(&self) -> bool {
        self.thread.is_empty()
    }
}

/// Time on a CPU by call, in pieces. A piece ends where its thread left a CPU, made another thread ready, or created one, and
/// begins where the one before ended. So every instant at which the critical path may reach a thread ends a piece.
///
/// The last piece of a thread's life is left out: it is what the thread's account has beyond all pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Work {
    /// Whose piece.
    #[serde(deserialize_with = "column::read")]
    pub thread: Vec<ThreadNumber>,
    /// When it ended, nanoseconds after [`Observed::started_ns`].
    #[serde(deserialize_with = "column::read")]
    pub at_ns: Vec<u64>,
    /// How many of the parts below belong to it.
    #[serde(deserialize_with = "column::read")]
    pub parts: Vec<u32>,
    /// The parts of all pieces, one after the other: the call, an index into [`Timeline::calls`].
    #[serde(deserialize_with = "column::read")]
    pub call: Vec<u32>,
    /// How long it ran there.
    #[serde(deserialize_with = "column::read")]
    pub ns: Vec<u64>,
}

impl Work {
    /// True where it holds no piece.
    pub fn is_empty(&self) -> bool {
        self.thread.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launched_command_has_a_root_and_an_attached_one_has_none() {
        let mut observed: Observed = Observed::default();
        observed.threads.push(ThreadObserved { number: ROOT, ..ThreadObserved::default() });
        assert!(observed.root().is_some());
        assert!(!serde_json::to_string(&observed).expect("plain data").contains("window"));
        observed.window = Window { begin: Begin::Attached, end: End::StillRunning };
        assert!(observed.root().is_none());
        let json = serde_json::to_value(&observed).expect("plain data");
        assert_eq!(json["window"], serde_json::json!({"begin": "attached", "end": "still-running"}));
        assert_eq!(serde_json::from_value::<Observed>(json).expect("what was written"), observed);
    }
}
