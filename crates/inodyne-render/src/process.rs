//! The processes of a trace as a tree: who started whom, what each is called, and how long the critical path ran through it.
//!
//! Thirteen processes called `cc1` say nothing; `cc1 main.c` and `cc1 list.c` do. So a process is named after the words it was
//! started with, cut to what tells it from others.

use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::observed::{Program, ThreadNumber, ThreadObserved};
use inodyne_model::run::Exit;
use inodyne_model::trace::Trace;

use crate::line::cut;

/// The width of a name, in columns.
const LONGEST_NAME: usize = 40;
/// Extensions of files that are given to compilers and interpreters.
const SOURCES: [&str; 22] = [
    "c", "cc", "cpp", "cxx", "m", "rs", "go", "java", "py", "pl", "rb", "sh", "js", "ts", "s", "S", "f90", "hs", "ml",
    "tex", "sql", "mk",
];

/// A process of the command.
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: String,
    /// Who started it: an index.
    pub(crate) parent: Option<usize>,
    /// How many are above it.
    pub(crate) depth: usize,
    /// Since the release of the command.
    pub(crate) born_ns: Nanos,
    /// When its last thread ended.
    pub(crate) ended_ns: Nanos,
    pub(crate) cpu_ns: Nanos,
    /// How long the critical path ran through its threads.
    pub(crate) path_ns: Nanos,
    pub(crate) threads: Vec<ThreadNumber>,
    /// How it ended; `None` if it is still alive, or if that is not known.
    pub(crate) exit: Option<Exit>,
}

/// All of them: each before those that it started, which are in the order in which they started.
pub(crate) struct Processes {
    pub(crate) all: Vec<Process>,
}

impl Processes {
    pub(crate) fn new(trace: &Trace) -> Processes {
        let path = time_on_path(trace);
        let mut born: Vec<Process> = Vec::new();
        let mut of_thread = HashMap::new();
        for (at, thread) in by_process(trace) {
            if at == born.len() {
                let parent = of_thread.get(&thread.parent).copied();
                born.push(Process::starting(thread, parent, trace.observed.started_ns));
            }
            of_thread.insert(thread.number, at);
            born[at].add(thread, trace.observed.started_ns, path.get(&thread.number).copied().unwrap_or_default());
        }
        for (at, program) in last_programs(trace, &of_thread) {
            born[at].name = in_short(program);
        }
        Processes { all: as_tree(born) }
    }

    /// The processes above this one, nearest first.
    pub(crate) fn above(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.all[at].parent, |above| self.all[*above].parent)
    }
}

/// How many processes there are.
pub(crate) fn count(trace: &Trace) -> u64 {
    by_process(trace).iter().map(|(at, _)| *at as u64 + 1).max().unwrap_or_default()
}

/// All threads in the order of their creation, each with the index of its process; processes are numbered in the same order.
fn by_process(trace: &Trace) -> Vec<(usize, &ThreadObserved)> {
    let mut threads: Vec<&ThreadObserved> = trace.observed.threads.iter().collect();
    threads.sort_by_key(|thread| (thread.born_ns, thread.number));
    let (mut by_pid, mut of_thread, mut processes) = (HashMap::new(), HashMap::new(), 0);
    let of_process = |thread: &ThreadObserved| {
        // A pid may be reused, by a process whose first thread has the same number. If processes were already running, that thread need not
        // have been joined before the others. A thread that executes a program takes over the first one's number (execve(2)): that one's
        // parent is in the process itself, which cannot create another one of the same pid.
        let is_first = thread.tid == thread.pid;
        let is_inside = |at: usize| of_thread.get(&thread.parent) == Some(&at);
        let known = by_pid.get(&thread.pid).copied();
        let known = known.filter(|(at, has_first)| !(is_first && *has_first) || is_inside(*at));
        let (at, has_first) = known.unwrap_or((processes, false));
        by_pid.insert(thread.pid, (at, has_first || is_first));
        of_thread.insert(thread.number, at);
        processes = processes.max(at + 1);
        at
    };
    let of: Vec<usize> = threads.iter().copied().map(of_process).collect();
    of.into_iter().zip(threads).collect()
}

impl Process {
    fn starting(first: &ThreadObserved, parent: Option<usize>, started_ns: Nanos) -> Process {
        Process {
            pid: first.pid,
            name: first.comm.clone(),
            parent,
            depth: 0,
            born_ns: first.born_ns.saturating_sub(started_ns),
            ended_ns: Nanos::ZERO,
            cpu_ns: Nanos::ZERO,
            path_ns: Nanos::ZERO,
            threads: Vec::new(),
            exit: None,
        }
    }

    fn add(&mut self, thread: &ThreadObserved, started_ns: Nanos, path_ns: Nanos) {
        self.ended_ns = self.ended_ns.max(thread.ended_ns.saturating_sub(started_ns));
        self.cpu_ns += thread.cpu_ns();
        self.path_ns += path_ns;
        self.threads.push(thread.number);
        self.exit = thread.process_exit.or(self.exit);
    }

    pub(crate) fn life_ns(&self) -> Nanos {
        self.ended_ns.saturating_sub(self.born_ns)
    }
}

fn time_on_path(trace: &Trace) -> HashMap<ThreadNumber, Nanos> {
    let mut sums: HashMap<ThreadNumber, Nanos> = HashMap::new();
    for (step, parts) in trace.path.iter() {
        *sums.entry(step.thread).or_default() += parts.iter().map(|part| part.ns).sum();
    }
    sums
}

/// What each process executed last.
fn last_programs<'a>(trace: &'a Trace, of_thread: &HashMap<ThreadNumber, usize>) -> BTreeMap<usize, &'a Program> {
    let mut last: BTreeMap<usize, &Program> = BTreeMap::new();
    for program in &trace.observed.programs {
        let Some(at) = of_thread.get(&program.thread) else { continue };
        let kept = last.entry(*at).or_insert(program);
        if program.at_ns >= kept.at_ns {
            *kept = program;
        }
    }
    last
}

/// In the order of a tree. Parents were born before their children, so they have lower indices.
fn as_tree(born: Vec<Process>) -> Vec<Process> {
    let mut children: Vec<Vec<usize>> = born.iter().map(|_| Vec::new()).collect();
    let mut next: Vec<usize> = Vec::new();
    for (at, process) in born.iter().enumerate() {
        match process.parent {
            Some(parent) => children[parent].push(at),
            None => next.push(at),
        }
    }
    next.reverse();
    let mut born: Vec<Option<Process>> = born.into_iter().map(Some).collect();
    let mut placed: HashMap<usize, usize> = HashMap::new();
    let mut all: Vec<Process> = Vec::new();
    while let Some(at) = next.pop() {
        let Some(mut process) = born[at].take() else { continue };
        process.parent = process.parent.and_then(|parent| placed.get(&parent).copied());
        process.depth = process.parent.map_or(0, |parent| all[parent].depth + 1);
        placed.insert(at, all.len());
        all.push(process);
        next.extend(children[at].iter().rev());
    }
    all
}

/// A program with what tells it from others like it: all of its words if these are short, otherwise the file it works on.
fn in_short(program: &Program) -> String {
    let first = program.args.first().map_or(program.file.as_str(), String::as_str);
    let name = base(first).trim_start_matches('-');
    let rest = program.args.get(1..).unwrap_or_default();
    let all = [name].into_iter().chain(rest.iter().map(|word| word.trim())).collect::<Vec<_>>().join(" ");
    if all.chars().count() <= LONGEST_NAME && !program.args_truncated {
        return all;
    }
    match works_on(rest) {
        Some(file) => cut(&format!("{name} {}", base(file)), LONGEST_NAME),
        None => cut(&all.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_NAME),
    }
}

/// The file that a long command is about: a source, or else what it writes.
fn works_on(words: &[String]) -> Option<&str> {
    // The beginning of a script for a shell says most.
    if words.first().is_some_and(|word| word.starts_with('-') && word.ends_with('c') && word.len() <= 3) {
        return None;
    }
    let is_source = |word: &&String| {
        let end = word.rsplit_once('.').map_or("", |(_, end)| end);
        // Intermediate files of compilers have random names.
        !word.starts_with('-') && !word.starts_with("/tmp/") && SOURCES.contains(&end) && !word.contains(' ')
    };
    let written = || words.iter().position(|word| word == "-o").and_then(|at| words.get(at + 1));
    words.iter().find(is_source).or_else(written).map(String::as_str)
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;

    fn short(line: &str) -> String {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        in_short(&Program { thread: 1, pid: 1, at_ns: Nanos(0), file: args[0].clone(), args, args_truncated: false })
    }

    #[test]
    fn a_process_is_called_by_what_tells_it_from_others() {
        assert_eq!(short("/usr/bin/find . -name x"), "find . -name x");
        let cc1 =
            "/usr/libexec/gcc/x86_64-linux-gnu/14/cc1 -quiet -imultiarch x86_64-linux-gnu src/main.c -o /tmp/ccA.s";
        assert_eq!(short(cc1), "cc1 main.c");
        assert_eq!(short("as --64 -I/usr/include/something/long -o build/main.o /tmp/ccAbCdEf.s"), "as main.o");
        assert_eq!(
            short("/bin/sh -c for i in a b c; do echo $i; done; echo and that was all"),
            "sh -c for i in a b c; do echo $i; done;…"
        );
        assert_eq!(short("-bash"), "bash");
    }

    #[test]
    fn a_pid_that_is_given_again_is_another_process() {
        let mut recording = sample::find_recording();
        let trace = &mut recording.traces[0];
        let first = trace.observed.threads[0].clone();
        let thread = |number, pid, tid| ThreadObserved {
            number,
            parent: 0,
            pid,
            tid,
            born_ns: first.born_ns + Nanos(number.into()),
            ..first.clone()
        };
        let mut processes = |threads: &[(u32, u32)]| {
            trace.observed.threads =
                (1..).zip(threads).map(|(number, (pid, tid))| thread(number, *pid, *tid)).collect();
            (count(trace), Processes::new(trace).all.len())
        };
        assert_eq!(processes(&[(7, 7), (7, 8), (7, 7), (7, 9)]), (2, 2));
        assert_eq!(processes(&[(7, 3), (7, 7), (7, 8)]), (1, 1), "its first thread was joined later");
        assert_eq!(processes(&[]), (0, 0));
    }

    #[test]
    fn a_thread_that_executes_a_program_keeps_its_process() {
        let mut recording = sample::find_recording();
        let trace = &mut recording.traces[0];
        let first = ThreadObserved { number: 1, parent: 0, pid: 7, tid: 7, ..trace.observed.threads[0].clone() };
        let second = |parent| ThreadObserved { number: 2, parent, born_ns: first.born_ns + Nanos(1), ..first.clone() };
        let mut processes = |parent| {
            trace.observed.threads = vec![first.clone(), second(parent)];
            count(trace)
        };
        assert_eq!([processes(1), processes(0)], [1, 2]);
    }

    /// A shell that started two programs, one of which started another.
    #[test]
    fn processes_are_a_tree_in_the_order_of_their_starts() {
        let mut recording = sample::find_recording();
        let trace = &mut recording.traces[0];
        let first = trace.observed.threads[0].clone();
        let thread = |number, parent, born| ThreadObserved {
            number,
            parent,
            pid: number,
            tid: number,
            comm: format!("p{number}"),
            born_ns: first.born_ns + Nanos(born),
            ..first.clone()
        };
        trace.observed.programs.clear();
        trace.observed.threads = vec![
            thread(1, 0, 0),
            thread(2, 1, 10),
            thread(3, 1, 20),
            thread(4, 2, 30),
            ThreadObserved { tid: 9, ..thread(5, 2, 40) },
        ];
        trace.observed.threads[4].pid = 2;
        let processes = Processes::new(trace);
        let told: Vec<(&str, usize, usize)> =
            processes.all.iter().map(|one| (one.name.as_str(), one.depth, one.threads.len())).collect();
        assert_eq!(told, [("p1", 0, 1), ("p2", 1, 2), ("p4", 2, 1), ("p3", 1, 1)]);
        assert_eq!(processes.above(2).collect::<Vec<_>>(), [1, 0]);
    }
}
