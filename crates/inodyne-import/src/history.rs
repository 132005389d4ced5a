//! From lines to the lives of threads: who was born when and of whom, which calls each made from when to when, how it ended.
//!
//! ```text
//! line       5 vfork( <unfinished …    6 execve(…) = 0    5 <… vfork resumed>) = 6    5 wait4(…) = 6    6 +++ exited
//! thread 5   ├─ vfork ───────────────────────────────────┤   ├─ wait4 ───────────────────────────────┤
//! thread 6       └ born      ├ execve ┤                                                    ended ┘
//! ```
//!
//! A thread may speak before the call that made it returns, and its id may be given again once it has ended.

use std::collections::HashMap;

use inodyne_model::run::Exit;
use inodyne_model::syscall::looks_up;

use crate::arguments;
use crate::line::{self, Event, Instant, Outcome, Returned};

/// Longest command name (`TASK_COMM_LEN` less its zero byte, include/linux/sched.h).
const LONGEST_COMM: usize = 15;
/// What a thread is called of which the log has no name.
const NAMELESS: &str = "unknown";

/// One call of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
    pub(crate) result: Result,
    /// Of its thread when it returned.
    pub(crate) comm: usize,
    /// The path that it looks up.
    pub(crate) path: Option<arguments::Text>,
    /// The process that it waited for, or made and waited for until that executed a program (vfork).
    pub(crate) waited_for: Option<Awaited>,
}

/// What a call returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Result {
    Value(i64),
    Error(String),
    /// The thread ended in it.
    Never,
}

/// For what of another process a call waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The end of the thread with this index.
    End(usize),
    /// Its first `execve`, or its end: who called vfork stands still until then.
    Program(usize),
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) tid: u32,
    /// Index of the first thread of its process; its own for that one itself.
    pub(crate) leader: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) born: Instant,
    /// None where the log ends first.
    pub(crate) ended: Option<(Instant, Exit)>,
    /// In the order of their beginnings.
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

/// A call as the log has it, its halves together.
struct Whole<'a> {
    name: &'a str,
    arguments: &'a str,
    begin: Instant,
    end: Instant,
    returned: Returned<'a>,
}

/// Everything that a log says.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// In the order in which they were first seen; the first is the root.
    pub(crate) threads: Vec<Thread>,
    /// Command names.
    pub(crate) comms: Vec<String>,
    /// Lines that are no lines of such a log.
    pub(crate) unread: u64,
    /// Calls without a duration: the log was made without `-T`.
    pub(crate) untimed: u64,
    /// Lines without a time.
    pub(crate) undated: u64,
    /// The last instant that a line names.
    pub(crate) last: Instant,
    current: HashMap<u32, usize>,
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
                Some(line) => history.line(&line),
                None => history.unread += 1,
            }
        }
        history
    }

    fn line(&mut self, line: &line::Line<'_>) {
        if line.event == Event::Other {
            return;
        }
        let Some(stamp) = line.at else {
            self.undated += 1;
            return;
        };
        let at = stamp.after(self.now);
        self.now = Some(at);
        self.last = self.last.max(at);
        // Without a column for it there is one thread.
        let tid = line.tid.unwrap_or(0);
        let thread = self.thread(tid, at);
        if let Some(comm) = line.comm {
            self.threads[thread].comm = self.comm(comm);
        }
        match line.event {
            Event::Call { name, arguments, outcome } => {
                self.whole(thread, name, arguments, at, outcome);
            }
            Event::Unfinished { name, arguments } => {
                let (name, arguments) = (name.to_owned(), arguments.to_owned());
                self.threads[thread].pending = Some(Pending { name, arguments, begin: at });
            }
            Event::Resumed { name, arguments, outcome } => self.resumed(thread, name, arguments, at, outcome),
            Event::Ended(exit) => {
                self.cut_off(thread, at);
                self.threads[thread].ended = Some((at, exit));
                self.current.remove(&tid);
            }
            Event::Superseded { by } => {
                self.cut_off(thread, at);
                self.threads[thread].ended = Some((at, Exit::Code(0)));
                match self.current.remove(&by) {
                    Some(other) => self.current.insert(tid, other),
                    None => self.current.remove(&tid),
                };
            }
            Event::Other => {}
        }
    }

    /// The living thread with this id; a new one where there is none.
    fn thread(&mut self, tid: u32, at: Instant) -> usize {
        match self.current.get(&tid) {
            Some(thread) => *thread,
            None => self.born(tid, None, true, at),
        }
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
        // exit_group and its like take no time that anybody would see.
        let took = outcome.took.unwrap_or_else(|| {
            self.untimed += u64::from(outcome.returned != Returned::Never);
            0
        });
        let end = begin.saturating_add(took);
        self.returned(thread, &Whole { name, arguments, begin, end, returned: outcome.returned });
    }

    fn resumed(&mut self, thread: usize, name: &str, arguments: &str, at: Instant, outcome: Outcome<'_>) {
        let Some(pending) = self.threads[thread].pending.take() else {
            // Its beginning is not in the log: it was under way when strace came.
            let begin = at.saturating_sub(outcome.took.unwrap_or(0));
            return self.returned(thread, &Whole { name, arguments, begin, end: at, returned: outcome.returned });
        };
        let begin = pending.begin;
        // `-T` is nearer to the truth than the time of the line, which was printed later.
        let end = outcome.took.map_or(at, |took| begin.saturating_add(took)).max(begin);
        let arguments = format!("{}{arguments}", pending.arguments);
        self.returned(thread, &Whole { name, arguments: &arguments, begin, end, returned: outcome.returned });
    }

    /// A call that the end of its thread cut off.
    fn cut_off(&mut self, thread: usize, at: Instant) {
        if let Some(Pending { name, arguments, begin }) = self.threads[thread].pending.take() {
            let returned = Returned::Never;
            self.returned(thread, &Whole { name: &name, arguments: &arguments, begin, end: at.max(begin), returned });
        }
    }

    fn returned(&mut self, thread: usize, call: &Whole<'_>) {
        self.last = self.last.max(call.end);
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
                let pid = call.arguments.split_once("si_pid=").map(|(_, rest)| rest);
                let pid = pid.and_then(|rest| rest.split([',', '}', ' ']).next()?.parse().ok());
                waited_for = pid.and_then(|pid| self.reaped(thread, pid));
            }
            _ => {}
        }
        let result = match call.returned {
            Returned::Value(value) => Result::Value(value),
            Returned::Error(name) => Result::Error(name.to_owned()),
            Returned::Never => Result::Never,
        };
        let path = looks_up(call.name).then(|| arguments::strings(call.arguments).next()).flatten();
        let comm = self.threads[thread].comm;
        let calls = &mut self.threads[thread].calls;
        // Two halves may overlap the line before by what printing took.
        let begin = calls.last().map_or(call.begin, |before: &Call| call.begin.max(before.end));
        let end = call.end.max(begin);
        calls.push(Call { name: call.name.to_owned(), begin, end, result, comm, path, waited_for });
    }

    fn executed(&mut self, thread: usize, call: &Whole<'_>) {
        let file = arguments::strings(call.arguments).next().map(|file| file.text).unwrap_or_default();
        let (words, is_cut) = arguments::words(call.arguments);
        self.threads[thread].comm = self.comm(file.rsplit('/').next().unwrap_or(&file));
        self.threads[thread].programs.push(Program { at: call.end, file, words, is_cut });
    }

    fn renamed(&mut self, thread: usize, arguments: &str) {
        if let Some(name) = arguments.starts_with("PR_SET_NAME").then(|| arguments::strings(arguments).next()).flatten()
        {
            self.threads[thread].comm = self.comm(&name.text);
        }
    }

    /// A thread or process was made: by whom is known only now, if it has not spoken before.
    fn made(&mut self, parent: usize, call: &Whole<'_>, value: i64) -> Option<Awaited> {
        let tid = u32::try_from(value).ok()?;
        let is_process = !call.arguments.contains("CLONE_THREAD");
        let known = self.current.get(&tid).copied();
        let child = match known.filter(|child| *child != parent && self.threads[*child].born >= call.begin) {
            Some(child) => {
                let (leader, comm) = (self.threads[parent].leader, self.threads[parent].comm);
                let thread = &mut self.threads[child];
                thread.parent = Some(parent);
                if !is_process {
                    thread.leader = leader;
                }
                // What it has executed meanwhile has named it.
                if thread.programs.is_empty() && self.comms[thread.comm] == NAMELESS {
                    thread.comm = comm;
                    thread.calls.iter_mut().for_each(|call| call.comm = comm);
                }
                child
            }
            None => self.born(tid, Some(parent), is_process, call.end),
        };
        (call.name == "vfork" || call.arguments.contains("CLONE_VFORK")).then_some(Awaited::Program(child))
    }

    /// Whose end a wait has told: the last thread with that id, ended or about to be said so.
    fn reaped(&self, waiter: usize, pid: i64) -> Option<Awaited> {
        let pid = u32::try_from(pid).ok()?;
        let child = self.threads.iter().rposition(|thread| thread.tid == pid)?;
        (child != waiter).then_some(Awaited::End(child))
    }
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
    fn an_id_is_given_again() {
        let log = "5 1.0 close(1) = 0 <0.1>\n5 1.0 +++ exited with 0 +++\n5 1.0 close(1) = 0 <0.1>";
        assert_eq!(History::of(log.lines()).threads.len(), 2);
    }
}
