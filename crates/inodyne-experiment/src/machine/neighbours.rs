//! What other programs used of the machine while a command ran: proc_stat(5), proc_pid_stat(5), proc_pid_io(5).
//!
//! All processes are looked at before and after. One that was there before and still is has used the difference; a shell or `make` has
//! by then waited for the children that it started meanwhile, so these count as its own. What a child that has ended meanwhile had used
//! before is subtracted, since its parent is charged for all of it at once. One that came later is not known to be a stranger.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Instant;

use inodyne_model::Nanos;
use inodyne_model::neighbours::{Neighbour, Neighbours, is_own};

/// `PF_KTHREAD` of include/linux/sched.h: what kernel threads do may be the command's doing.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The kernel reports times in hundredths of a second (include/asm-generic/param.h: USER_HZ, the same on all architectures).
const TICK: Nanos = Nanos(10_000_000);
/// Less I/O than this is not worth keeping.
const LEAST_BYTES: u64 = 1 << 20;

/// The machine, looked at in the time that it takes to read about all processes.
pub(super) struct Look {
    began: Instant,
    ended: Instant,
    stolen: u64,
    /// By pid and the instant at which they were started: pids are reused.
    processes: HashMap<(u32, u64), Process>,
}

struct Process {
    comm: String,
    parent: u32,
    ticks: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl Look {
    /// As it is now.
    pub(super) fn now() -> Look {
        let began = Instant::now();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let stolen = fs::read_to_string("/proc/stat").ok().and_then(|text| stolen(&text)).unwrap_or(0);
        let processes = pids.filter_map(process).collect();
        Look { began, ended: Instant::now(), stolen, processes }
    }

    /// What was used since then.
    pub(super) fn since(&self, before: &Look) -> Neighbours {
        let both = self.processes.iter().filter_map(|(key, now)| Some((key.0, now, before.processes.get(key)?)));
        let ended = self.ended_below(before);
        let mut processes: Vec<Neighbour> = both.map(|(pid, now, then)| between(pid, now, then)).collect();
        for process in &mut processes {
            let earlier = ended.get(&process.pid).copied().unwrap_or(0);
            process.cpu_ns = Nanos(process.cpu_ns.0.saturating_sub(ticks(earlier).0));
        }
        let bytes = |of: &Neighbour| of.read_bytes + of.write_bytes;
        processes.retain(|process| process.cpu_ns > Nanos::ZERO || bytes(process) >= LEAST_BYTES);
        processes.sort_by_key(|process| (std::cmp::Reverse((process.cpu_ns, bytes(process))), process.pid));
        processes.truncate(Neighbours::MOST);
        Neighbours {
            span_ns: self.ended.saturating_duration_since(before.began).into(),
            stolen_ns: ticks(self.stolen.saturating_sub(before.stolen)),
            processes,
        }
    }
}

impl Look {
    /// What processes that are gone by now had used before, in ticks, by their nearest ancestor that is still there.
    fn ended_below(&self, before: &Look) -> HashMap<u32, u64> {
        let parents: HashMap<u32, u32> =
            before.processes.iter().map(|(key, process)| (key.0, process.parent)).collect();
        let still: HashSet<u32> =
            before.processes.keys().filter(|key| self.processes.contains_key(key)).map(|key| key.0).collect();
        let mut ended = HashMap::new();
        for (key, process) in before.processes.iter().filter(|(key, _)| !still.contains(&key.0)) {
            let above = std::iter::successors(Some(key.0), |pid| parents.get(pid).copied()).take(parents.len() + 1);
            if let Some(heir) = above.into_iter().find(|pid| still.contains(pid)) {
                *ended.entry(heir).or_insert(0) += process.ticks;
            }
        }
        ended
    }
}

fn between(pid: u32, now: &Process, then: &Process) -> Neighbour {
    Neighbour {
        pid,
        comm: now.comm.clone(),
        cpu_ns: ticks(now.ticks.saturating_sub(then.ticks)),
        read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
        write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
    }
}

fn ticks(count: u64) -> Nanos {
    Nanos(count.saturating_mul(TICK.0))
}

/// The eighth number of the first line, which is for all CPUs.
fn stolen(stat: &str) -> Option<u64> {
    stat.lines().next()?.split_whitespace().nth(8)?.parse().ok()
}

/// A process with what it and its children have used; none for a kernel thread, one of ours, or one that has ended.
fn process(pid: u32) -> Option<((u32, u64), Process)> {
    // A process may give itself any name, even one that is not UTF-8.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let (comm, parent, started, ticks) = parsed(&String::from_utf8_lossy(&stat))?;
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let [read_bytes, write_bytes] = ["read_bytes: ", "write_bytes: "].map(|name| {
        let line = io.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    });
    Some(((pid, started), Process { comm, parent, ticks, read_bytes, write_bytes }))
}

/// Name, parent, start time, and ticks of CPU time from a line of /proc/PID/stat.
fn parsed(stat: &str) -> Option<(String, u32, u64, u64)> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let comm = stat.get(open + 1..close)?;
    let numbers: Vec<u64> = stat.get(close + 1..)?.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
    // The third field of proc_pid_stat(5) is the first here.
    let field = |number: usize| numbers.get(number - 3).copied();
    if is_own(comm) || field(9)? & KERNEL_THREAD != 0 {
        return None;
    }
    Some((
        comm.to_owned(),
        u32::try_from(field(4)?).ok()?,
        field(22)?,
        field(14)? + field(15)? + field(16)? + field(17)?,
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn line(comm: &str, flags: u64, ticks: [u64; 4], started: u64) -> String {
        let [user, sys, children_user, children_sys] = ticks;
        format!(
            "77 ({comm}) S 1 77 77 0 -1 {flags} 100 0 3 0 {user} {sys} {children_user} {children_sys} 20 0 1 0 {started} 1000"
        )
    }

    #[test]
    fn a_process_is_told_with_its_children_whatever_its_name() {
        let name = "a) R 1 (b";
        assert_eq!(parsed(&line(name, 0, [1, 20, 300, 4_000], 55)), Some((name.to_owned(), 1, 55, 4_321)));
        assert_eq!(parsed(&line("kworker/0:1", KERNEL_THREAD, [1; 4], 5)), None);
        assert_eq!(parsed(&line("inodyne", 0, [1; 4], 5)), None);
        assert_eq!(parsed(&line("inodyne-disk", 0, [1; 4], 5)), None);
        assert!(parsed(&line("inodynes", 0, [1; 4], 5)).is_some());
        assert_eq!(parsed(""), None);
        assert_eq!(parsed("77 (sh) S 1"), None);
    }

    fn nothing() -> Look {
        let now = Instant::now();
        Look { began: now, ended: now, stolen: 0, processes: HashMap::new() }
    }

    #[test]
    fn the_time_between_includes_that_of_looking() {
        let before = nothing();
        let [began, ended] = [70, 100].map(|ms| before.began + Duration::from_millis(ms));
        let earlier = Look { ended: before.began + Duration::from_millis(20), ..before };
        assert_eq!(Look { began, ended, ..nothing() }.since(&earlier).span_ns, Nanos(100_000_000));
    }

    #[test]
    fn only_what_lies_between_is_told_and_the_busiest_first() {
        let of = |ticks, read_bytes| Process { comm: "cc1".to_owned(), parent: 0, ticks, read_bytes, write_bytes: 0 };
        let look = |stolen, all: &[(u32, u64, Process)]| {
            let processes = all.iter().map(|(pid, started, p)| ((*pid, *started), of(p.ticks, p.read_bytes))).collect();
            Look { stolen, processes, ..nothing() }
        };
        let before = look(5, &[(1, 1, of(100, 0)), (2, 1, of(7, 0)), (3, 1, of(9, 9)), (4, 1, of(0, 0))]);
        // 2 does nothing, 3 is another process by now, 5 is new.
        let after = look(
            8,
            &[(1, 1, of(103, 0)), (2, 1, of(7, 0)), (3, 2, of(50, 9)), (4, 1, of(0, 2 << 20)), (5, 9, of(80, 0))],
        );
        let found = after.since(&before);
        assert_eq!(found.stolen_ns, Nanos(30_000_000));
        let all: Vec<_> = found.processes.iter().map(|p| (p.pid, p.cpu_ns.0 / 1_000_000, p.read_bytes >> 20)).collect();
        assert_eq!(all, [(1, 30, 0), (4, 0, 2)]);
    }

    /// `make` (1) waits for a shell (2) with a compiler (3) below it, both of which began before and end meanwhile, and for
    /// another child that began and ended meanwhile. The other shell (4) goes on.
    #[test]
    fn what_children_had_used_before_is_not_taken_for_what_they_do() {
        let of = |parent, ticks| Process { comm: "cc1".to_owned(), parent, ticks, read_bytes: 0, write_bytes: 0 };
        let look = |all: Vec<(u32, Process)>| Look {
            processes: all.into_iter().map(|(pid, process)| ((pid, 1), process)).collect(),
            ..nothing()
        };
        let before = look(vec![(1, of(0, 10)), (2, of(1, 40)), (3, of(2, 500)), (4, of(1, 7))]);
        // Its own 2, 5 more of each of those below, and 8 of the child that came and went.
        let after = look(vec![(1, of(0, 10 + 2 + 45 + 505 + 8)), (4, of(1, 8))]);
        let found: Vec<_> = after.since(&before).processes.iter().map(|p| (p.pid, p.cpu_ns)).collect();
        assert_eq!(found, [(1, ticks(20)), (4, ticks(1))]);
    }

    #[test]
    fn a_process_whose_name_is_no_text_is_seen_too() {
        let named = std::thread::spawn(|| {
            nix::sys::prctl::set_name(c"caf\xe9").unwrap();
            process(nix::unistd::gettid().as_raw().cast_unsigned()).map(|(_, process)| process.comm)
        });
        assert_eq!(named.join().unwrap().as_deref(), Some("caf\u{fffd}"));
    }

    #[test]
    fn stolen_time_is_that_of_all_cpus() {
        assert_eq!(stolen("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 44 9 10\n"), Some(88));
        assert_eq!(stolen(""), None);
    }
}
