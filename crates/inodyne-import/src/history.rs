//! From lines to the lives of threads: when each was created and by whom, which calls it made from when to when, how it ended.
//!
//! ```text
//! line       5 vfork( <unfinished …    6 execve(…) = 0    5 <… vfork resumed>) = 6    5 wait4(…) = 6    6 +++ exited
//! thread 5   ├─ vfork ───────────────────────────────────┤   ├─ wait4 ───────────────────────────────┤
//! thread 6       └ born      ├ execve ┤                                                    ended ┘
//! ```
//!
//! A thread may appear before the call that created it returns, and its id may be reused once it has ended.
//!
//! On a terminal, strace names threads only while it follows more than one, and breaks off a line to say that it follows another:
//!
//! ```text
//! line       (1) execve(…) = 0   (2) vfork(strace: Process 6 attached   (3) [pid 6] execve(…   (4) [pid 5] <… vfork resumed>) = 6
//!                                     <unfinished ...>
//! thread     the unnamed one     the same; torn, and put together      6, its child           5 is the unnamed one
//! ```

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use inodyne_model::run::Exit;
use inodyne_model::syscall::looks_up;

use crate::arguments;
use crate::line::{self, Event, Instant, Outcome, Returned, Stamp};

/// Longest command name (`TASK_COMM_LEN` minus its NUL byte, include/linux/sched.h).
const LONGEST_COMM: usize = 15;
/// The name of a thread that the log does not name.
const NAMELESS: &str = "unknown";
/// Id of the thread of lines that do not name one.
const UNNAMED: u32 = 0;
/// Flags of `clone` (include/uapi/linux/sched.h).
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x10000;
/// How many lines are searched for the rest of a torn call: what it printed may be several lines long.
const LONGEST_TEAR: u32 = 16;

/// One call of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
    pub(crate) result: Result,
    /// Its thread's command name when it returned.
    pub(crate) comm: usize,
    /// The path that it looks up.
    pub(crate) path: Option<arguments::Text>,
    /// The process that it waited for, or created and waited for until that executed a program (vfork).
    pub(crate) waited_for: Option<Awaited>,
}

/// What a call returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Result {
    Value(i64),
    Error(String),
    /// The thread, or the log, ended in it.
    Never,
}

/// What a call waited for in another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The end of the thread with this index.
    End(usize),
    /// Its first `execve`, or its end: the caller of vfork is blocked until then.
    Program(usize),
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) tid: u32,
    /// Index of the first thread of its process; for that thread, its own index.
    pub(crate) leader: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) born: Instant,
    /// `None` if the log ends first.
    pub(crate) ended: Option<(Instant, Exit)>,
    /// The thread that executed a program and has been the only thread of the process since, under this one's id.
    superseded_by: Option<usize>,
    /// In the order in which they began.
    pub(crate) calls: Vec<Call>,
    pub(crate) programs: Vec<Program>,
    comm: usize,
    pending: Option<Pending>,
}

/// A successful `execve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) at: Instant,
    pub(crate) file: String,
    pub(crate) words: Vec<String>,
    pub(crate) is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pending {
    name: String,
    arguments: String,
    begin: Instant,
}

/// A call as the log has it, its halves joined.
struct Whole<'a> {
    name: &'a str,
    arguments: &'a str,
    begin: Instant,
    end: Instant,
    returned: Returned<'a>,
}

/// Everything in a log.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// In the order in which they were first seen.
    pub(crate) threads: Vec<Thread>,
    /// Index of the thread whose life the wall-clock time is: the first one, or, if strace attached to processes that were running, the
    /// one that lived longest.
    pub(crate) root: usize,
    /// Whether the first thread did not begin by executing a program: strace attached to it, or the log is only a part.
    pub(crate) began_running: bool,
    /// Command names.
    pub(crate) comms: Vec<String>,
    /// Lines that do not belong to such a log.
    pub(crate) unread: u64,
    /// Calls without a duration: the log was made without `-T`.
    pub(crate) untimed: u64,
    /// Lines without a time.
    pub(crate) undated: u64,
    /// The last instant that a line names.
    pub(crate) last: Instant,
    /// Living threads by their ids.
    current: HashMap<u32, usize>,
    /// The thread of lines that do not name one.
    unnamed: Option<usize>,
    /// Ids of living threads that strace said it follows because another thread created them.
    attached: HashSet<u32>,
    /// A call whose line has only its beginning, and how many more lines may have the rest.
    torn: Option<(String, u32)>,
    /// Inside the table of `-C`, which ends with its total.
    in_table: bool,
    now: Option<Instant>,
}

impl History {
    /// Reads a log.
    pub(crate) fn of<'a>(lines: impl IntoIterator<Item = &'a str>) -> History {
        let mut history = History::default();
        for text in lines {
            if text.trim().is_empty() {
                continue;
            }
            match line::parse(text) {
                Some(line) => {
                    history.in_table = line::begins_table(text) || history.in_table && line.event == Event::Other;
                    // strace finishes the torn call before it says anything about another.
                    if line.at.is_some() {
                        history.unread += u64::from(history.torn.take().is_some());
                    }
                    history.line(&line);
                }
                None if history.in_table => history.in_table = !text.trim_end().ends_with(" total"),
                None => history.broken(text),
            }
        }
        history.unread += u64::from(history.torn.is_some());
        history.cut_off_all();
        history.choose_root();
        history
    }

    fn choose_root(&mut self) {
        let first_call = self.threads.first().and_then(|first| first.calls.first());
        self.began_running = !first_call.is_some_and(|call| matches!(call.name.as_str(), "execve" | "execveat"));
        if self.began_running {
            let life = |thread: &Thread| thread.ended.map_or(self.last, |(at, _)| at).saturating_sub(thread.born);
            let longest = (0..self.threads.len()).min_by_key(|thread| Reverse(life(&self.threads[*thread])));
            self.root = longest.unwrap_or(0);
        }
    }

    /// Index of the first thread of the root's process.
    pub(crate) fn leader_of_root(&self) -> usize {
        self.threads.get(self.root).map_or(0, |root| root.leader)
    }

    /// When the wall-clock time began.
    pub(crate) fn started(&self) -> Instant {
        let which = if self.began_running { self.threads.len() } else { 1 };
        self.threads.iter().take(which).map(|thread| thread.born).min().unwrap_or(0)
    }

    /// How the process with this first thread ended.
    pub(crate) fn exit_of(&self, leader: usize) -> Option<Exit> {
        self.threads[self.survivor(leader)].ended.map(|(_, exit)| exit)
    }

    /// The thread itself, or the last of those that took its place.
    fn survivor(&self, thread: usize) -> usize {
        let after = |thread: &usize| self.threads[*thread].superseded_by;
        std::iter::successors(Some(thread), after).take(self.threads.len()).last().unwrap_or(thread)
    }

    /// A line that says nothing by itself: the beginning of a torn call, its end, or a line that is not strace's.
    fn broken(&mut self, text: &str) {
        let begins = line::torn(text);
        if let Some((head, more)) = self.torn.take() {
            let joined = format!("{head}{text}");
            match line::parse(&joined) {
                Some(line) => return self.line(&line),
                None => self.unread += 1,
            }
            if begins.is_none() {
                self.torn = more.checked_sub(1).map(|more| (joined, more));
                return;
            }
        }
        match begins {
            Some(torn) => {
                self.attached.extend(torn.attached);
                self.torn = Some((torn.head.to_owned(), LONGEST_TEAR));
            }
            None => self.unread += 1,
        }
    }

    fn line(&mut self, line: &line::Line<'_>) {
        match line.event {
            Event::Other => {
                // A relative time is counted from the line before, whatever that was about.
                if let Some(stamp @ Stamp::Relative(_)) = line.at {
                    let at = stamp.after(self.now);
                    self.now = Some(at);
                    self.last = self.last.max(at);
                }
                return;
            }
            Event::Attached { tid } => {
                // Before the first call, this is about a process that strace was told to follow.
                if !self.threads.is_empty() {
                    self.attached.insert(tid);
                }
                return;
            }
            _ => {}
        }
        let Some(stamp) = line.at else {
            self.undated += 1;
            return;
        };
        let at = stamp.after(self.now);
        self.now = Some(at);
        self.last = self.last.max(at);
        let thread = match line.tid {
            Some(tid) => self.thread(tid, at, &line.event),
            None => self.unnamed(at),
        };
        let tid = self.threads[thread].tid;
        // strace goes on writing the old name after a program was executed.
        if let Some(comm) = line.comm.filter(|_| self.threads[thread].programs.is_empty()) {
            self.threads[thread].comm = self.comm(comm);
        }
        match line.event {
            Event::Call { name, arguments, outcome } => {
                self.whole(thread, name, arguments, at, outcome);
            }
            Event::Unfinished { name, arguments } => {
                let (name, arguments) = (name.to_owned(), arguments.to_owned());
                // If another call was under way, its end is not in the log, nor how long it took.
                self.threads[thread].pending = Some(Pending { name, arguments, begin: at });
            }
            Event::Resumed { name, arguments, outcome } => self.resumed(thread, name, arguments, at, outcome),
            Event::Ended(exit) => {
                self.ended(thread, at, exit);
                self.current.remove(&tid);
                self.attached.remove(&tid);
            }
            Event::Superseded { by } => {
                self.ended(thread, at, Exit::Code(0));
                self.current.remove(&tid);
                if let Some(other) = self.current.remove(&by) {
                    self.current.insert(tid, other);
                    self.threads[thread].superseded_by = Some(other);
                    let leader = self.threads[thread].leader;
                    // Whoever waits for the process now waits for this thread.
                    (self.threads[other].tid, self.threads[other].leader) = (tid, leader);
                }
            }
            Event::Attached { .. } | Event::Other => {}
        }
    }

    /// The living thread with this id; a new one if there is none.
    fn thread(&mut self, tid: u32, at: Instant, event: &Event<'_>) -> usize {
        if let Some(thread) = self.current.get(&tid) {
            return *thread;
        }
        match self.unnamed.filter(|unnamed| self.is_id_of(*unnamed, tid, event)) {
            Some(unnamed) => {
                self.threads[unnamed].tid = tid;
                self.current.remove(&UNNAMED);
                self.current.insert(tid, unnamed);
                unnamed
            }
            None => self.born(tid, None, true, at),
        }
    }

    /// Whether a new id belongs to the thread that had none in the log so far. Otherwise it is one of its children: strace has
    /// said that it follows it, or the unnamed thread is still in the call that created it (`-q`).
    fn is_id_of(&self, unnamed: usize, tid: u32, event: &Event<'_>) -> bool {
        let thread = &self.threads[unnamed];
        let goes_on = thread
            .pending
            .as_ref()
            .is_none_or(|pending| matches!(event, Event::Resumed { name, .. } if *name == pending.name));
        thread.tid == UNNAMED && thread.ended.is_none() && !self.attached.contains(&tid) && goes_on
    }

    /// The thread of a line that does not name one: the same as before, or, if that has ended, the only one left.
    fn unnamed(&mut self, at: Instant) -> usize {
        let same = self.unnamed.filter(|thread| self.threads[*thread].ended.is_none());
        let only = || self.current.values().next().copied().filter(|_| self.current.len() == 1);
        let thread = same.or_else(only);
        let thread = thread.unwrap_or_else(|| self.born(UNNAMED, None, true, at));
        self.unnamed = Some(thread);
        thread
    }

    fn born(&mut self, tid: u32, parent: Option<usize>, is_process: bool, at: Instant) -> usize {
        let number = self.threads.len();
        let of_parent = parent.map(|parent| (self.threads[parent].leader, self.threads[parent].comm));
        let comm = of_parent.map_or_else(|| self.comm(NAMELESS), |(_, comm)| comm);
        let leader = of_parent.filter(|_| !is_process).map_or(number, |(leader, _)| leader);
        self.threads.push(Thread {
            tid,
            leader,
            parent,
            born: at,
            ended: None,
            superseded_by: None,
            calls: Vec::new(),
            programs: Vec::new(),
            comm,
            pending: None,
        });
        self.current.insert(tid, number);
        number
    }

    fn comm(&mut self, name: &str) -> usize {
        let mut end = name.len().min(LONGEST_COMM);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        self.comms.iter().position(|known| known == name).unwrap_or_else(|| {
            self.comms.push(name.to_owned());
            self.comms.len() - 1
        })
    }

    fn whole(&mut self, thread: usize, name: &str, arguments: &str, begin: Instant, outcome: Outcome<'_>) {
        // If a call was under way, a part of the log is missing (`grep`), and it is not known when that call ended.
        self.threads[thread].pending = None;
        // exit_group and the like take no visible time.
        let took = outcome.took.unwrap_or_else(|| {
            self.untimed += u64::from(outcome.returned != Returned::Never);
            0
        });
        let end = begin.saturating_add(took);
        self.returned(thread, &Whole { name, arguments, begin, end, returned: outcome.returned });
    }

    fn resumed(&mut self, thread: usize, name: &str, arguments: &str, at: Instant, outcome: Outcome<'_>) {
        let Some(pending) = self.threads[thread].pending.take().filter(|pending| pending.name == name) else {
            // Its beginning is not in the log: it was in progress when strace attached.
            let begin = at.saturating_sub(outcome.took.unwrap_or(0));
            let attached = &mut self.threads[thread];
            if attached.calls.is_empty() {
                attached.born = attached.born.min(begin);
            }
            return self.returned(thread, &Whole { name, arguments, begin, end: at, returned: outcome.returned });
        };
        let begin = pending.begin;
        // `-T` is more accurate than the time of the line, which was printed later.
        let end = outcome.took.map_or(at, |took| begin.saturating_add(took)).max(begin);
        let arguments = format!("{}{arguments}", pending.arguments);
        self.returned(thread, &Whole { name, arguments: &arguments, begin, end, returned: outcome.returned });
    }

    /// The end of a thread, which cuts off the call that it is in.
    fn ended(&mut self, thread: usize, at: Instant, exit: Exit) {
        self.cut_off(thread, at);
        let thread = &mut self.threads[thread];
        let last = thread.calls.last().map_or(at, |call| call.end);
        thread.ended = Some((at.max(last), exit));
    }

    /// The end of the log, when calls may still be in progress: strace detached, or was interrupted.
    fn cut_off_all(&mut self) {
        let last = self.last;
        for thread in 0..self.threads.len() {
            self.cut_off(thread, last);
        }
    }

    fn cut_off(&mut self, thread: usize, at: Instant) {
        if let Some(Pending { name, arguments, begin }) = self.threads[thread].pending.take() {
            let returned = Returned::Never;
            // Of the time that is left, what the call before it took is not its own.
            let begin = self.threads[thread].calls.last().map_or(begin, |before| begin.max(before.end));
            self.returned(thread, &Whole { name: &name, arguments: &arguments, begin, end: at.max(begin), returned });
        }
    }

    fn returned(&mut self, thread: usize, call: &Whole<'_>) {
        let value = match call.returned {
            Returned::Value(value) => value,
            _ => -1,
        };
        let mut waited_for = None;
        match call.name {
            "execve" | "execveat" if value == 0 => self.executed(thread, call),
            "prctl" if value == 0 => self.renamed(thread, call.arguments),
            "clone" | "clone3" | "fork" | "vfork" if value > 0 => waited_for = self.made(thread, call, value),
            "wait4" | "waitpid" if value > 0 => waited_for = self.reaped(thread, value),
            "waitid" if value == 0 => {
                waited_for = pid_of(call.arguments).and_then(|pid| self.reaped(thread, pid));
            }
            _ => {}
        }
        let result = match call.returned {
            Returned::Value(value) => Result::Value(value),
            Returned::Error(name) => Result::Error(name.to_owned()),
            Returned::Never => Result::Never,
        };
        let path = looks_up(call.name).then(|| arguments::path(call.arguments)).flatten();
        let comm = self.threads[thread].comm;
        let calls = &mut self.threads[thread].calls;
        // Two halves may overlap the previous line by the time that printing took, and if times are whole seconds (-t), all calls of
        // one second begin together. A thread makes one call after another, and each keeps its duration.
        let begin = calls.last().map_or(call.begin, |before: &Call| call.begin.max(before.end));
        let end = begin.saturating_add(call.end.saturating_sub(call.begin));
        self.last = self.last.max(end);
        calls.push(Call { name: call.name.to_owned(), begin, end, result, comm, path, waited_for });
    }

    fn executed(&mut self, thread: usize, call: &Whole<'_>) {
        let file = arguments::strings(call.arguments).next().map(|file| file.text).unwrap_or_default();
        let (words, is_cut) = arguments::words(call.arguments);
        // `execveat` of a descriptor gives no name (AT_EMPTY_PATH).
        let named = [Some(&file), words.first()].into_iter().flatten();
        let name = named.map(|name| name.rsplit('/').next().unwrap_or(name)).find(|name| !name.is_empty());
        if let Some(name) = name {
            self.threads[thread].comm = self.comm(name);
        }
        self.threads[thread].programs.push(Program { at: call.end, file, words, is_cut });
    }

    fn renamed(&mut self, thread: usize, arguments: &str) {
        if let Some(name) = arguments.starts_with("PR_SET_NAME").then(|| arguments::strings(arguments).next()).flatten()
        {
            self.threads[thread].comm = self.comm(&name.text);
        }
    }

    /// A thread or process was created: if it has appeared before, only now is it known by whom.
    fn made(&mut self, parent: usize, call: &Whole<'_>, value: i64) -> Option<Awaited> {
        let tid = u32::try_from(value).ok()?;
        let is_process = !has_flag(call.arguments, "CLONE_THREAD", CLONE_THREAD);
        let known = self.current.get(&tid).copied();
        let child = match known.filter(|child| *child != parent && self.threads[*child].born >= call.begin) {
            Some(child) => {
                let (leader, comm) = (self.threads[parent].leader, self.threads[parent].comm);
                let thread = &mut self.threads[child];
                thread.parent = Some(parent);
                if !is_process {
                    thread.leader = leader;
                }
                // If it has executed a program in the meantime, it has a name from that; before, it had its parent's.
                let is_nameless = |comm: usize| self.comms[comm] == NAMELESS;
                if is_nameless(thread.comm) {
                    thread.comm = comm;
                }
                thread.calls.iter_mut().filter(|call| is_nameless(call.comm)).for_each(|call| call.comm = comm);
                child
            }
            None => self.born(tid, Some(parent), is_process, call.end),
        };
        let is_vfork = call.name == "vfork" || has_flag(call.arguments, "CLONE_VFORK", CLONE_VFORK);
        is_vfork.then_some(Awaited::Program(child))
    }

    /// Whose end a wait has reported: the last thread with that id, whether the log has its end already or only later.
    fn reaped(&self, waiter: usize, pid: i64) -> Option<Awaited> {
        let pid = u32::try_from(pid).ok()?;
        let child = self.threads.iter().rposition(|thread| thread.tid == pid)?;
        let child = self.survivor(child);
        (child != waiter).then_some(Awaited::End(child))
    }
}

/// Whether a clone has this flag, by name or as a bit of a number (`-X raw`).
fn has_flag(arguments: &str, name: &str, bit: u64) -> bool {
    let number = || {
        let (_, rest) = arguments.split_once("flags=0x")?;
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        u64::from_str_radix(&rest[..digits], 16).ok()
    };
    arguments.contains(name) || number().is_some_and(|flags| flags & bit != 0)
}

/// Of which process `waitid` tells: `si_pid=6`, `si_pid=6<ls>` (`--decode-pids=comm`), `si_pid=2 /* 4711 in strace's PID NS */`.
fn pid_of(arguments: &str) -> Option<i64> {
    let (_, rest) = arguments.split_once("si_pid=")?;
    let number = |text: &str| {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        text[..digits].parse().ok()
    };
    let field = rest.split(", si_").next().unwrap_or(rest);
    let outside = field.rsplit_once("/* ").filter(|(_, comment)| comment.contains(" in strace's PID NS"));
    outside.and_then(|(_, comment)| number(comment)).or_else(|| number(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"
5 1700000100.000000 execve("/bin/sh", ["sh", "-c", "ls"], 0x1 /* 3 vars */) = 0 <0.000100>
5 1700000100.001000 vfork( <unfinished ...>
6 1700000100.001200 execve("/bin/ls", ["ls"], 0x1 <unfinished ...>
5 1700000100.001500 <... vfork resumed>)       = 6 <0.000400>
6 1700000100.001600 <... execve resumed>)      = 0 <0.000300>
5 1700000100.001700 wait4(-1,  <unfinished ...>
6 1700000100.002000 openat(AT_FDCWD, "/x", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000010>
6 1700000100.003000 exit_group(2)              = ?
6 1700000100.003100 +++ exited with 2 +++
5 1700000100.003200 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 2}], 0, NULL) = 6 <0.001450>
5 1700000100.004000 +++ exited with 0 +++
"#;

    #[test]
    fn a_shell_and_its_child() {
        let history = History::of(LOG.lines());
        let [shell, child] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!((history.unread, history.untimed, history.undated), (0, 0, 0));
        assert_eq!((child.parent, child.leader, child.tid), (Some(0), 1, 6));
        assert_eq!(child.ended, Some((1_700_000_100_003_100_000, Exit::Code(2))));
        let awaited: Vec<_> = shell.calls.iter().map(|call| (call.name.as_str(), call.waited_for)).collect();
        let expected = [("execve", None), ("vfork", Some(Awaited::Program(1))), ("wait4", Some(Awaited::End(1)))];
        assert_eq!(awaited, expected);
        let names: Vec<_> = child.calls.iter().map(|call| history.comms[call.comm].as_str()).collect();
        assert_eq!(names, ["ls", "ls", "ls"]);
        assert_eq!(child.calls[1].path.as_ref().unwrap().text, "/x");
        assert_eq!(child.calls[2].result, Result::Never);
    }

    #[test]
    fn a_relative_time_is_counted_from_the_line_before_whatever_that_is_about() {
        let log = r#"     0.000000 execve("/bin/x", ["x"], 0x1) = 0 <0.000100>
     2.000000 --- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL} ---
     0.000100 exit_group(0)           = ?
     0.000050 +++ exited with 0 +++
"#;
        let history = History::of(log.lines());
        let [thread] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!(thread.ended.map(|(at, _)| at - thread.born), Some(2_000_150_000));
    }

    /// What strace writes to a terminal: [`LOG`] up to the wait, and the shell once more after it.
    const TERMINAL: &str = r#"12:00:00.000000 execve("/bin/sh", ["sh", "-c", "ls"], 0x1 /* 3 vars */) = 0 <0.000100>
12:00:00.000500 write(1, "hello\nyou\n", 10hello
you
) = 10 <0.000020>
12:00:00.001000 vfork(strace: Process 6 attached
 <unfinished ...>
[pid     6] 12:00:00.001200 execve("/bin/ls", ["ls"], 0x1 <unfinished ...>
[pid     5] 12:00:00.001500 <... vfork resumed>)       = 6 <0.000400>
[pid     6] 12:00:00.001600 <... execve resumed>)      = 0 <0.000300>
[pid     5] 12:00:00.001700 wait4(-1,  <unfinished ...>
[pid     6] 12:00:00.003000 exit_group(2)              = ?
[pid     6] 12:00:00.003100 +++ exited with 2 +++
12:00:00.003200 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 2}], 0, NULL) = 6 <0.001450>
12:00:00.003300 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=6} ---
12:00:00.003400 getpid() = 5 <0.000010>
12:00:00.004000 +++ exited with 0 +++
"#;

    #[test]
    fn a_log_on_a_terminal_names_threads_only_while_there_are_more_than_one() {
        // With -q, strace does not say which processes it follows.
        let quiet = TERMINAL.replace("vfork(strace: Process 6 attached\n <unfin", "vfork( <unfin");
        for log in [TERMINAL, &quiet] {
            let history = History::of(log.lines());
            let [shell, child] = &history.threads[..] else { panic!("{history:?}") };
            // The second of the two lines that the shell printed.
            assert_eq!((history.unread, history.untimed, history.undated), (1, 0, 0));
            assert_eq!((shell.tid, child.tid, child.parent), (5, 6, Some(0)));
            assert_eq!(shell.ended, Some((43_200_004_000_000, Exit::Code(0))));
            let awaited: Vec<_> = shell.calls.iter().map(|call| (call.name.as_str(), call.waited_for)).collect();
            let vfork = ("vfork", Some(Awaited::Program(1)));
            let wait = ("wait4", Some(Awaited::End(1)));
            assert_eq!(awaited, [("execve", None), ("write", None), vfork, wait, ("getpid", None)]);
            assert_eq!(shell.calls[1].result, Result::Value(10));
        }
    }

    #[test]
    fn a_clone_is_put_together_with_its_result() {
        let log = r#"
1.0 clone(Process 6 attached (waiting for parent)
Process 6 resumed (parent 5 ready)
child_stack=0, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f9) = 6 <0.000100>
[pid     6] 2.0 close(3) = 0 <0.1>
[pid     5] 2.5 close(3) = 0 <0.1>
[pid     5] 2.6 write(2, "lost", 4lost
[pid     6] 2.7 close(4) = 0 <0.1>"#;
        let history = History::of(log.lines());
        let [parent, child] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!((parent.tid, child.tid, child.parent, history.unread), (5, 6, Some(0), 1));
        assert_eq!((parent.calls.len(), child.calls.len()), (2, 2));
    }

    #[test]
    fn the_last_thread_of_a_log_on_a_terminal_has_no_name_either() {
        let log = "1.0 fork() = 6 <0.1>\nstrace: Process 6 attached\n[pid 5] 1.5 close(1) = 0 <0.1>
[pid 5] 2.0 +++ exited with 0 +++\n3.0 close(2) = 0 <0.1>\n4.0 +++ exited with 3 +++";
        let history = History::of(log.lines());
        let [parent, child] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!((parent.tid, parent.calls.len(), child.calls.len()), (5, 2, 1));
        assert_eq!(child.ended.map(|(_, exit)| exit), Some(Exit::Code(3)));
    }

    #[test]
    fn what_strace_was_told_to_follow_is_nobodys_child() {
        let log = "strace: Process 5 attached\n1.0 fork() = 6 <0.1>\nstrace: Process 6 attached
[pid 6] 1.5 close(1) = 0 <0.1>\n[pid 5] 1.6 close(1) = 0 <0.1>";
        let history = History::of(log.lines());
        assert_eq!(
            history.threads.iter().map(|thread| (thread.tid, thread.parent)).collect::<Vec<_>>(),
            [(5, None), (6, Some(0))]
        );
    }

    #[test]
    fn calls_of_one_second_follow_each_other() {
        let log = "[pid 7] 04:38:57 fsync(9) = 0 <0.024>\n[pid 7] 04:38:57 fsync(9) = 0 <0.018>
[pid 7] 04:38:57 fsync(9) = 0 <0.030>\n[pid 7] 04:38:57 +++ exited with 0 +++";
        let history = History::of(log.lines());
        let [thread] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!(thread.calls.iter().map(|call| call.end - call.begin).sum::<u64>(), 72_000_000);
        assert_eq!(thread.ended.map(|(at, _)| at - thread.born), Some(72_000_000));
        assert_eq!(history.last - thread.born, 72_000_000);
    }

    #[test]
    fn a_thread_takes_the_id_of_its_process_when_it_executes_a_program() {
        let log = r#"
5 1700000001.000000 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0}, 88) = 6 <0.000100>
6 1700000001.001000 execve("/bin/true", ["true"], 0x1 <unfinished ...>
5 1700000001.001100 +++ superseded by execve in pid 6 +++
5 1700000001.001200 <... execve resumed>) = 0 <0.000200>
5 1700000001.002000 close(3) = 0 <0.000001>
5 1700000001.003000 +++ exited with 0 +++"#;
        let history = History::of(log.lines());
        assert_eq!(history.threads.len(), 2);
        assert_eq!(history.threads[1].leader, 0);
        assert_eq!(history.threads[1].calls.len(), 2);
        assert_eq!(history.threads[0].ended.map(|(at, _)| at), Some(1_700_000_001_001_100_000));
    }

    #[test]
    fn who_waits_for_a_process_waits_for_the_thread_that_executed_a_program() {
        let log = r#"
4 1700000000.000000 fork() = 5 <0.000100>
4 1700000000.500000 wait4(5,  <unfinished ...>
5 1700000001.000000 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0}, 88) = 6 <0.000100>
6 1700000001.001000 execve("/bin/sh", ["sh"], 0x1 <pid changed to 5 ...>
5 1700000001.001100 +++ superseded by execve in pid 6 +++
5 1700000001.001200 <... execve resumed>) = 0 <0.000200>
5 1700000001.003000 +++ exited with 3 +++
4 1700000001.003100 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 5 <0.503100>"#;
        let history = History::of(log.lines());
        let [waiter, first, survivor] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!(history.unread, 0);
        assert_eq!(waiter.calls[1].waited_for, Some(Awaited::End(2)));
        assert_eq!((first.tid, survivor.tid, survivor.leader), (5, 5, 1));
        assert_eq!(survivor.programs[0].words, ["sh"]);
        assert_eq!((history.exit_of(0), history.exit_of(1)), (None, Some(Exit::Code(3))));
    }

    #[test]
    fn a_call_that_is_under_way_when_the_log_ends_takes_until_then() {
        let log = "5 1700000001.0 futex(0x1, FUTEX_WAIT, 0, NULL <unfinished ...>
6 1700000002.0 close(1) = 0 <0.1>
6 1700000003.0 read(0,  <detached ...>";
        let history = History::of(log.lines());
        let [one, other] = &history.threads[..] else { panic!("{history:?}") };
        let [futex] = &one.calls[..] else { panic!("{one:?}") };
        assert_eq!((futex.end - futex.begin, futex.end, &futex.result), (2_000_000_000, history.last, &Result::Never));
        assert_eq!((one.ended, other.ended), (None, None));
        assert_eq!(other.calls[1].name, "read");
    }

    #[test]
    fn an_id_is_given_again() {
        let log = "5 1.0 close(1) = 0 <0.1>\n5 1.0 +++ exited with 0 +++\n5 1.0 close(1) = 0 <0.1>";
        assert_eq!(History::of(log.lines()).threads.len(), 2);
    }

    /// The calls of a thread with their begin and length, in milliseconds after the second 1700000100.
    fn calls_in_ms(thread: &Thread) -> Vec<(&str, u64, u64)> {
        let ms = |call: &Call| (call.begin / 1_000_000 - 1_700_000_100_000, (call.end - call.begin) / 1_000_000);
        thread.calls.iter().map(|call| (call.name.as_str(), ms(call).0, ms(call).1)).collect()
    }

    #[test]
    fn a_call_of_which_the_end_is_missing_takes_no_time_after_the_next_line() {
        let whole = "7 1700000100.100000 fsync(9 <unfinished ...>\n7 1700000110.000000 fsync(9) = 0 <0.050000>
7 1700000110.100000 +++ exited with 0 +++";
        let history = History::of(whole.lines());
        let [thread] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!(calls_in_ms(thread), [("fsync", 10_000, 50)]);
        assert_eq!(thread.ended.map(|(at, _)| at - thread.born), Some(10_000_000_000));
        assert_eq!(history.last - thread.born, 10_000_000_000);

        let other = "7 1700000100.100000 read(0 <unfinished ...>\n7 1700000101.000000 write(1 <unfinished ...>
7 1700000102.000000 <... write resumed>, \"x\", 1) = 1 <1.000000>\n7 1700000103.000000 read(0 <unfinished ...>
7 1700000105.000000 <... write resumed>, \"x\", 1) = 1 <0.500000>";
        let history = History::of(other.lines());
        let [thread] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!(calls_in_ms(thread), [("write", 1_000, 1_000), ("write", 4_500, 500)]);
    }

    #[test]
    fn a_call_that_is_cut_off_ends_with_its_thread() {
        // The call before it took longer than until it began, by the time that printing took.
        let log = "7 1700000100.000000 close(1) = 0 <2.000000>\n7 1700000101.000000 read(0 <unfinished ...>
7 1700000103.000000 +++ exited with 0 +++";
        let history = History::of(log.lines());
        let [thread] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!(calls_in_ms(thread), [("close", 0, 2_000), ("read", 2_000, 1_000)]);
        assert_eq!(thread.ended.map(|(at, _)| at - thread.born), Some(3_000_000_000));
    }

    #[test]
    fn a_thread_lives_from_the_beginning_of_a_call_of_which_the_log_has_only_the_end() {
        let log =
            "7 1700000110.000000 <... fsync resumed>) = 0 <9.000000>\n7 1700000110.500000 close(1) = 0 <0.100000>";
        let history = History::of(log.lines());
        let [thread] = &history.threads[..] else { panic!("{history:?}") };
        assert_eq!(calls_in_ms(thread), [("fsync", 1_000, 9_000), ("close", 10_500, 100)]);
        assert_eq!(history.started(), 1_700_000_101_000_000_000);
    }

    #[test]
    fn names_are_those_that_programs_had() {
        // The column goes on with the old name, vfork's child has its parent's until it executes, and a descriptor has no name.
        let log = r#"
5<strace> 1700000100.000000 execve("/bin/sh", ["sh"], 0x1) = 0 <0.000100>
5<strace> 1700000100.001000 vfork( <unfinished ...>
6 1700000100.001200 close(3) = 0 <0.000001>
6 1700000100.001300 execveat(4, "", ["/bin/ls", "/"], 0x1, AT_EMPTY_PATH <unfinished ...>
5<strace> 1700000100.001500 <... vfork resumed>) = 6 <0.000400>
6 1700000100.001600 <... execveat resumed>) = 0 <0.000300>
6 1700000100.001700 execveat(4, "", [], 0x1, AT_EMPTY_PATH) = 0 <0.000300>
"#;
        let history = History::of(log.lines());
        let names = |thread: usize| -> Vec<_> {
            history.threads[thread].calls.iter().map(|call| history.comms[call.comm].as_str()).collect()
        };
        assert_eq!(names(0), ["sh", "sh"]);
        assert_eq!(names(1), ["sh", "ls", "ls"]);
        assert!(history.threads[1].calls.iter().all(|call| call.path.is_none()));
    }

    #[test]
    fn flags_may_be_a_number() {
        let log = "5 1.0 clone3({flags=0x3d0f00, exit_signal=0}, 88) = 6 <0.1>
5 2.0 clone(child_stack=NULL, flags=0x4111, exit_signal=0) = 7 <0.1>
5 3.0 clone(child_stack=NULL, flags=0x1200011, child_tidptr=0x10000) = 8 <0.1>";
        let history = History::of(log.lines());
        assert_eq!(history.threads.iter().map(|thread| thread.leader).collect::<Vec<_>>(), [0, 0, 2, 3]);
        let awaited: Vec<_> = history.threads[0].calls.iter().map(|call| call.waited_for).collect();
        assert_eq!(awaited, [None, Some(Awaited::Program(2)), None]);
    }

    #[test]
    fn a_wait_tells_of_a_process_in_several_ways() {
        let of =
            |field: &str| pid_of(&format!("P_ALL, 0, {{si_signo=SIGCHLD, si_pid={field}, si_uid=0}}, WEXITED, NULL"));
        assert_eq!(["6", "6<ls>", "6<a, }b>"].map(of), [Some(6); 3]);
        assert_eq!(["2 /* 4711 in strace's PID NS */", "2<ls> /* 4711 in strace's PID NS */"].map(of), [Some(4711); 2]);
        assert_eq!((of("x"), pid_of("P_ALL, 0, NULL")), (None, None));
    }

    #[test]
    fn the_table_of_strace_is_nobodys_output() {
        let log = "5 1.0 close(1) = 0 <0.1>
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 90.00    0.000123           5        23         3 openat
 10.00    0.000012           5         2           close
------ ----------- ----------- --------- --------- ----------------
100.00    0.000135           5        25         3 total
printed";
        let history = History::of(log.lines());
        assert_eq!((history.unread, history.threads.len(), history.threads[0].calls.len()), (1, 1, 1));
        // Half a table swallows no calls.
        let cut = format!("{}\n5 2.0 close(1) = 0 <0.1>\nprinted", log.lines().take(4).collect::<Vec<_>>().join("\n"));
        let history = History::of(cut.lines());
        assert_eq!((history.unread, history.threads[0].calls.len()), (1, 2));
    }
}
