//! Which files the command's processes have mapped as code, seen while they live: that is where their functions' names are looked up
//! once they are gone. And whose processes they are, since anybody can write a map of generated code for any process.
//!
//! Processes are only looked at now and then, so one that lives a few milliseconds may be missed. Its program is still known from its
//! `execve`, and most libraries from the linker's cache (`user_symbols`).
//!
//! The list of a process's mappings is read under a lock of its address space, whose holder may be one of two thousand threads that wait for
//! a CPU, for seconds. So a thread of its own reads it: the ring buffers would fill meanwhile.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// From one look to the next.
const PERIOD: Duration = Duration::from_millis(50);
/// Processes looked at each time.
const MOST_PROCESSES: usize = 32;
/// Files that are kept. More than any program maps, but still a limit.
const MOST_FILES: usize = 8_192;
/// The longest wait for a list once the trace is over; for several, twice as long. Whoever holds the lock may be stuck in the kernel, for instance where a file is mapped
/// whose server does not answer; then the list never comes.
const LAST: Duration = Duration::from_secs(5);

/// Processes, each with a user as which it ran.
pub type Users = BTreeSet<(u32, u32)>;

/// What was seen so far.
#[derive(Debug, Default)]
pub struct MappedFiles {
    files: BTreeSet<PathBuf>,
    users: Users,
    /// Processes looked at since the last time that all had been.
    seen: BTreeSet<u32>,
    last: Option<Instant>,
    reader: Option<Reader>,
}

impl MappedFiles {
    /// Has the next few of these processes looked at, if it is time to. Never waits.
    pub fn look(&mut self, processes: impl Iterator<Item = u32>) {
        self.look_by(|pid| mapped_in(&pid.to_string()), processes);
    }

    fn look_by(&mut self, read: fn(u32) -> BTreeSet<PathBuf>, processes: impl Iterator<Item = u32>) {
        if self.last.is_some_and(|last| last.elapsed() < PERIOD) || self.files.len() >= MOST_FILES {
            return;
        }
        self.last = Some(Instant::now());
        // If the system gives no thread, nothing is seen until it does.
        let Some(mut reader) = self.reader.take().or_else(|| Reader::start(read).ok()) else { return };
        self.files.extend(reader.found());
        if !reader.is_asked {
            let next = self.next(processes);
            self.users.extend(next.iter().filter_map(|pid| Some((*pid, user_of(*pid)?))));
            reader.ask(next);
        }
        self.reader = Some(reader);
    }

    /// Those whose turn it is. Once all have had theirs it starts over, since programs map more as they run.
    fn next(&mut self, processes: impl Iterator<Item = u32>) -> BTreeSet<u32> {
        let mut next = BTreeSet::new();
        for pid in processes.filter(|pid| !self.seen.contains(pid)) {
            if next.len() == MOST_PROCESSES && !next.contains(&pid) {
                self.seen.extend(&next);
                return next;
            }
            next.insert(pid);
        }
        self.seen.clear();
        next
    }

    /// Whose processes these were.
    pub fn take_users(&mut self) -> Users {
        std::mem::take(&mut self.users)
    }

    /// All files, once the last look is over or has taken too long.
    pub fn into_files(mut self) -> BTreeSet<PathBuf> {
        self.files.extend(self.reader.take().map(Reader::finish).unwrap_or_default());
        self.files
    }
}

/// The thread that looks at processes.
#[derive(Debug)]
struct Reader {
    asked: Option<Sender<BTreeSet<u32>>>,
    /// What each process has mapped, and none once all that were asked for have been looked at.
    found: Option<Receiver<Option<BTreeSet<PathBuf>>>>,
    /// Whether some are still to be looked at.
    is_asked: bool,
    thread: Option<JoinHandle<()>>,
    /// Nothing is sent here: it is closed when the thread ends.
    ended: Receiver<()>,
    /// How long it is waited for.
    patience: Duration,
}

impl Reader {
    fn start(read: fn(u32) -> BTreeSet<PathBuf>) -> std::io::Result<Reader> {
        let (asked, asking) = channel::<BTreeSet<u32>>();
        let (finding, found) = channel();
        let (ending, ended) = channel();
        let look = move || {
            let _ending: Sender<()> = ending;
            for processes in asking {
                for pid in processes {
                    // Where the tracer is gone nobody hears it any more.
                    if finding.send(Some(read(pid))).is_err() {
                        return;
                    }
                }
                let _ = finding.send(None);
            }
        };
        let thread = thread::Builder::new().spawn(look)?;
        Ok(Reader {
            asked: Some(asked),
            found: Some(found),
            is_asked: false,
            thread: Some(thread),
            ended,
            patience: LAST,
        })
    }

    fn ask(&mut self, processes: BTreeSet<u32>) {
        self.is_asked = self.asked.as_ref().is_some_and(|asked| asked.send(processes).is_ok());
    }

    /// What has been found since.
    fn found(&mut self) -> BTreeSet<PathBuf> {
        let answers: Vec<_> = self.found.iter().flat_map(Receiver::try_iter).collect();
        self.is_asked &= !answers.contains(&None);
        answers.into_iter().flatten().flatten().collect()
    }

    /// Waits for the last look, though not for ever, and returns what it has found.
    fn finish(mut self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        let until = Instant::now() + 2 * LAST;
        while let Some(found) = self.found.as_ref().filter(|_| self.is_asked) {
            let left = until.saturating_duration_since(Instant::now());
            match found.recv_timeout(self.patience.min(left)) {
                Ok(Some(more)) => files.extend(more),
                Ok(None) | Err(RecvTimeoutError::Disconnected) => self.is_asked = false,
                Err(RecvTimeoutError::Timeout) => (self.is_asked, self.patience) = (false, Duration::ZERO),
            }
        }
        files
    }
}

impl Drop for Reader {
    /// No thread outlives the tracer, since what comes next may fork: it ends with the process that it is just looking at. Only one that is
    /// stuck is left behind, which is in the kernel and so holds no lock of ours.
    fn drop(&mut self) {
        (self.asked, self.found) = (None, None);
        let Some(thread) = self.thread.take() else { return };
        if self.ended.recv_timeout(self.patience) == Err(RecvTimeoutError::Disconnected) {
            let _ = thread.join();
        }
    }
}

/// The files that a process has mapped as code; none where it is gone.
pub fn mapped_in(process: &str) -> BTreeSet<PathBuf> {
    let maps = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.split(|byte| *byte == b'\n').filter_map(code_file).collect()
}

/// To whom the files belong that a process makes; none where it is gone. Takes no lock that is held for long.
fn user_of(process: u32) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{process}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // Real, effective, saved, and for files.
    users.split_whitespace().nth(3)?.parse().ok()
}

/// `7f12-7f34 r-xp 00001000 08:01 1234   /usr/lib/libc.so.6`; none if the file no longer has a name.
fn code_file(line: &[u8]) -> Option<PathBuf> {
    let is_code = line.split(|byte| *byte == b' ').nth(1).is_some_and(|rights| rights.contains(&b'x'));
    let path = &line[line.iter().position(|byte| *byte == b'/')?..];
    (is_code && !path.ends_with(b" (deleted)")).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn code_and_nothing_else() {
        let lines = [
            "7f00-7f10 r-xp 00001000 08:01 12   /usr/lib/a b.so",
            "7f00-7f10 r--p 00001000 08:01 12   /usr/lib/data",
            "7f00-7f10 r-xp 00001000 08:01 12   /tmp/gone.so (deleted)",
            "7f00-7f10 r-xp 00000000 00:00 0    [vdso]",
        ];
        let files: Vec<PathBuf> = lines.iter().filter_map(|line| code_file(line.as_bytes())).collect();
        assert_eq!(files, [PathBuf::from("/usr/lib/a b.so")]);
    }

    #[test]
    fn every_process_has_its_turn() {
        let mut mapped = MappedFiles::default();
        // Each with two threads.
        let all = || (1..=70u32).flat_map(|pid| [pid, pid]);
        let mut turn = || mapped.next(all()).into_iter().collect::<Vec<u32>>();
        assert_eq!(turn(), (1..=32).collect::<Vec<_>>());
        assert_eq!(turn(), (33..=64).collect::<Vec<_>>());
        assert_eq!(turn(), (65..=70).collect::<Vec<_>>());
        assert_eq!(turn(), (1..=32).collect::<Vec<_>>());
    }

    #[test]
    fn our_own_program_is_seen_once_in_a_while() {
        let mut mapped = MappedFiles::default();
        mapped.look([std::process::id()].into_iter());
        mapped.look([1].into_iter());
        let own = std::env::current_exe().expect("this program has a name");
        assert!(mapped.take_users().contains(&(std::process::id(), rustix::process::geteuid().as_raw())));
        assert!(mapped.into_files().contains(&own));
    }

    #[test]
    fn nobody_waits_for_a_list_that_takes_long() {
        static LISTS: Mutex<()> = Mutex::new(());
        let read = |pid: u32| {
            drop(LISTS.lock());
            BTreeSet::from([PathBuf::from(pid.to_string())])
        };
        let held = LISTS.lock().expect("nobody panics");
        let (done, looked) = channel();
        let look = move || {
            let mut mapped = MappedFiles::default();
            mapped.look_by(read, [1].into_iter());
            mapped.last = None;
            mapped.look_by(read, [2].into_iter());
            done.send(mapped).expect("it is waited for");
        };
        thread::spawn(look);
        let mapped = looked.recv_timeout(Duration::from_secs(60)).expect("nobody waits");
        drop(held);
        assert_eq!(mapped.into_files(), BTreeSet::from([PathBuf::from("1")]), "the second look was left out");
    }

    #[test]
    fn nobody_waits_for_ever_for_a_list_that_never_comes() {
        static IS_WAITED_FOR: AtomicBool = AtomicBool::new(true);
        let read = |pid: u32| {
            while pid == 2 && IS_WAITED_FOR.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
            BTreeSet::from([PathBuf::from(pid.to_string())])
        };
        let (done, found) = channel();
        let look = move || {
            let mut mapped = MappedFiles::default();
            mapped.look_by(read, [1, 2].into_iter());
            done.send(mapped.into_files()).expect("it is waited for");
        };
        thread::spawn(look);
        let files = found.recv_timeout(Duration::from_secs(60)).expect("nobody waits for ever");
        IS_WAITED_FOR.store(false, Ordering::SeqCst);
        assert_eq!(files, BTreeSet::from([PathBuf::from("1")]));
    }

    #[test]
    fn what_one_look_has_found_is_taken_by_a_later_one_which_asks_again() {
        let read = |pid: u32| BTreeSet::from([PathBuf::from(pid.to_string())]);
        let mut mapped = MappedFiles::default();
        let begun = Instant::now();
        for last in [1, 2] {
            while !mapped.files.contains(&PathBuf::from(last.to_string())) {
                assert!(begun.elapsed() < Duration::from_secs(60), "{last} is not seen");
                mapped.last = None;
                mapped.look_by(read, [last].into_iter());
                thread::yield_now();
            }
        }
    }

    #[test]
    fn no_thread_outlives_it() {
        static IS_OVER: AtomicBool = AtomicBool::new(false);
        let read = |_: u32| {
            thread::sleep(Duration::from_millis(50));
            IS_OVER.store(true, Ordering::SeqCst);
            BTreeSet::new()
        };
        let mut mapped = MappedFiles::default();
        mapped.look_by(read, [1].into_iter());
        drop(mapped);
        assert!(IS_OVER.load(Ordering::SeqCst));
    }
}
