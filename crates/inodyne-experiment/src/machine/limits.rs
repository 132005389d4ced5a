//! The limits of the cgroups that a command is in, and what came of them while it ran: cgroups(7), Documentation/admin-guide/cgroup-v2.rst
//! and cgroup-v1/.
//!
//! A command may move itself into another cgroup, so this is checked from time to time. What an ancestor allows counts as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use inodyne_model::Nanos;
use inodyne_model::limit::{Limit, LimitKind};

/// Where a hierarchy is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// Its controllers; none for version 2.
    controllers: Vec<String>,
    /// Which part of it is mounted.
    root: String,
    mounted: PathBuf,
}

/// The limits met so far.
pub(super) struct Limits {
    hierarchies: Vec<Hierarchy>,
    /// What /proc/PID/cgroup last said.
    membership: String,
    /// By the directory of their cgroup, with how much of them had been used, and how long they had held threads, when it was met.
    met: BTreeMap<PathBuf, Vec<Limit>>,
}

impl Limits {
    /// None met yet.
    pub(super) fn new() -> Limits {
        // Names of mounts and of cgroups need not be UTF-8.
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mounts = String::from_utf8_lossy(&mounts);
        Limits {
            hierarchies: mounts.lines().filter_map(hierarchy).collect(),
            membership: String::new(),
            met: BTreeMap::new(),
        }
    }

    /// Looks up which cgroups the process is in now. For one that has ended, this can no longer be known.
    pub(super) fn look(&mut self, pid: i32) {
        let membership = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let membership = String::from_utf8_lossy(&membership).into_owned();
        if membership == self.membership {
            return;
        }
        for group in groups(&membership, &self.hierarchies) {
            self.met.entry(group).or_insert_with_key(|group| limits_of(group));
        }
        self.membership = membership;
    }

    /// The limits with what came of them since they were met.
    pub(super) fn finish(self) -> Vec<Limit> {
        let mut all = Vec::new();
        for (group, met) in self.met.into_iter().filter(|(_, met)| !met.is_empty()) {
            let now = limits_of(&group);
            all.extend(met.into_iter().map(|before| since(before, &now)));
        }
        all
    }
}

/// What came of a limit since it was met, by the limits of its cgroup now: nothing, where it is no longer there.
fn since(before: Limit, now: &[Limit]) -> Limit {
    let same = |now: &&Limit| now.kind == before.kind && now.device == before.device && now.file == before.file;
    let now = now.iter().find(same).unwrap_or(&before);
    let (used, held_ns) = (now.used.saturating_sub(before.used), now.held_ns.saturating_sub(before.held_ns));
    Limit { used, held_ns, ..before }
}

/// What a cgroup limits, according to the files in its directory.
fn limits_of(group: &Path) -> Vec<Limit> {
    limits(&|name| fs::read_to_string(group.join(name)).ok(), group)
}

/// A line of mountinfo, if it is about cgroups: `36 35 0:31 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio`.
fn hierarchy(line: &str) -> Option<Hierarchy> {
    let (before, after) = line.split_once(" - ")?;
    let before: Vec<&str> = before.split(' ').collect();
    let [_, _, _, root, mounted, ..] = before[..] else { return None };
    let [kind, _, options] = after.split(' ').collect::<Vec<_>>()[..] else { return None };
    let controllers = match kind {
        "cgroup2" => Vec::new(),
        "cgroup" => options.split(',').map(str::to_owned).collect(),
        _ => return None,
    };
    Some(Hierarchy { controllers, root: root.to_owned(), mounted: mounted.into() })
}

/// The cgroups of a process and all above them, from the lines of its /proc/PID/cgroup: `7:blkio:/build`, `0::/build`.
fn groups(membership: &str, hierarchies: &[Hierarchy]) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else { return None };
        let is_meant = |hierarchy: &&Hierarchy| match controllers {
            "" => hierarchy.controllers.is_empty(),
            _ => controllers.split(',').any(|each| hierarchy.controllers.iter().any(|own| own == each)),
        };
        let hierarchy = hierarchies.iter().find(is_meant)?;
        let path = Path::new(path);
        let below = path.strip_prefix(&hierarchy.root).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        let own = hierarchy.mounted.join(below);
        let all = own.ancestors().take_while(|directory| directory.starts_with(&hierarchy.mounted));
        Some(all.map(Path::to_owned).collect::<Vec<_>>())
    };
    membership.lines().filter_map(of_line).flatten().collect()
}

/// What the cgroup with this directory limits, and what it has used so far, according to its files.
fn limits(read: &dyn Fn(&str) -> Option<String>, directory: &Path) -> Vec<Limit> {
    let file = |name: &str| directory.join(name).display().to_string();
    let limit =
        |name: &str, kind, value| Limit { file: file(name), kind, device: None, value, used: 0, held_ns: Nanos::ZERO };
    let mut all = Vec::new();
    // Version 2: "8:0 rbps=1048576 wbps=max riops=max wiops=120".
    let statistics = read("io.stat").unwrap_or_default();
    for line in read("io.max").unwrap_or_default().lines() {
        let Some((device, settings)) = line.split_once(' ') else { continue };
        for (key, kind, counter) in [
            ("rbps", LimitKind::ReadBytes, "rbytes"),
            ("wbps", LimitKind::WriteBytes, "wbytes"),
            ("riops", LimitKind::ReadRequests, "rios"),
            ("wiops", LimitKind::WriteRequests, "wios"),
        ] {
            let Some(value) = setting(settings, key) else { continue };
            let of_device = statistics.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '));
            let used = of_device.and_then(|line| setting(line, counter)).unwrap_or(0);
            all.push(Limit { device: Some(device.to_owned()), used, ..limit("io.max", kind, value) });
        }
    }
    // Version 1: "8:0 1048576", and "8:0 Read 4096" for what was used.
    for (name, kind, counter, word) in [
        ("blkio.throttle.read_bps_device", LimitKind::ReadBytes, "io_service_bytes", "Read"),
        ("blkio.throttle.write_bps_device", LimitKind::WriteBytes, "io_service_bytes", "Write"),
        ("blkio.throttle.read_iops_device", LimitKind::ReadRequests, "io_serviced", "Read"),
        ("blkio.throttle.write_iops_device", LimitKind::WriteRequests, "io_serviced", "Write"),
    ] {
        for line in read(name).unwrap_or_default().lines() {
            let Some((device, value)) = line.split_once(' ') else { continue };
            let Ok(value) = value.trim().parse() else { continue };
            let counted = read(&format!("blkio.throttle.{counter}_recursive")).unwrap_or_default();
            let key = format!("{device} {word} ");
            let used = counted.lines().find_map(|line| line.strip_prefix(&key)?.trim().parse().ok()).unwrap_or(0);
            all.push(Limit { device: Some(device.to_owned()), used, ..limit(name, kind, value) });
        }
    }
    // CPU time: "50000 100000" in version 2, quota and period in microseconds; -1 for no quota in version 1.
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let cpu = match read("cpu.max") {
        Some(text) => text.split_once(' ').and_then(|(quota, period)| {
            Some(("cpu.max", quota.parse::<u64>().ok()?, period.trim().parse::<u64>().ok()?))
        }),
        None => {
            number("cpu.cfs_quota_us").and_then(|quota| Some(("cpu.cfs_quota_us", quota, number("cpu.cfs_period_us")?)))
        }
    };
    if let Some((name, quota, period)) = cpu {
        let statistics = read("cpu.stat").unwrap_or_default();
        let counter =
            |key: &str| statistics.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        // Microseconds in version 2, nanoseconds in version 1.
        let held = counter("throttled_usec ").map(|us| us.saturating_mul(1000)).or_else(|| counter("throttled_time "));
        let thousandths = quota.saturating_mul(1000) / period.max(1);
        all.push(Limit { held_ns: Nanos(held.unwrap_or(0)), ..limit(name, LimitKind::Cpu, thousandths) });
    }
    // "max" in version 2 is not a number; its equivalent in version 1 is more than any machine has.
    for name in ["memory.high", "memory.max", "memory.limit_in_bytes"] {
        if let Some(value) = number(name).filter(|value| *value < 1 << 60) {
            all.push(limit(name, LimitKind::Memory, value));
        }
    }
    all
}

/// The number of a key among `key=number` words; none where it is `max`.
fn setting(words: &str, key: &str) -> Option<u64> {
    words.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a cgroup with these files limits.
    fn of(files: &[(&str, &str)]) -> Vec<(LimitKind, String, u64, u64, u64)> {
        let read = |name: &str| files.iter().find(|file| file.0 == name).map(|file| file.1.to_owned());
        let all = limits(&read, Path::new("/g"));
        all.into_iter()
            .map(|limit| (limit.kind, limit.device.unwrap_or(limit.file), limit.value, limit.used, limit.held_ns.0))
            .collect()
    }

    #[test]
    fn limits_of_both_versions_are_read() {
        let two = of(&[
            ("io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=120\n"),
            ("io.stat", "7:0 rbytes=1\n8:0 rbytes=4096 wbytes=5 rios=1 wios=2 dbytes=0 dios=0\n"),
            ("cpu.max", "50000 100000\n"),
            ("cpu.stat", "usage_usec 9\nnr_throttled 4\nthrottled_usec 70\n"),
            ("memory.high", "max\n"),
            ("memory.max", "2097152\n"),
        ]);
        let device = || "8:0".to_owned();
        assert_eq!(
            two,
            [
                (LimitKind::ReadBytes, device(), 1 << 20, 4096, 0),
                (LimitKind::WriteRequests, device(), 120, 2, 0),
                (LimitKind::Cpu, "/g/cpu.max".to_owned(), 500, 0, 70_000),
                (LimitKind::Memory, "/g/memory.max".to_owned(), 1 << 21, 0, 0),
            ]
        );
        let one = of(&[
            ("blkio.throttle.read_iops_device", "8:0 100\n"),
            ("blkio.throttle.io_serviced_recursive", "8:0 Read 17\n8:0 Write 3\nTotal 20\n"),
            ("cpu.cfs_quota_us", "-1\n"),
            ("cpu.cfs_period_us", "100000\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(one, [(LimitKind::ReadRequests, device(), 100, 17, 0)]);
    }

    #[test]
    fn what_limits_those_above_counts() {
        let mounts = "36 35 0:31 / /sys/fs/cgroup/blkio rw,relatime shared:9 - cgroup cgroup rw,blkio\n\
                      37 35 0:32 /pod /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n38 1 8:1 / / rw - ext4 /dev/a rw";
        let hierarchies: Vec<Hierarchy> = mounts.lines().filter_map(hierarchy).collect();
        assert_eq!(hierarchies.len(), 2);
        let found = groups("7:blkio:/a/b\n3:cpuset:/\n0::/pod/c\n", &hierarchies);
        let paths: Vec<&str> = found.iter().filter_map(|group| group.to_str()).collect();
        assert_eq!(
            paths,
            [
                "/sys/fs/cgroup/blkio/a/b",
                "/sys/fs/cgroup/blkio/a",
                "/sys/fs/cgroup/blkio",
                "/sys/fs/cgroup/unified/c",
                "/sys/fs/cgroup/unified"
            ]
        );
        // What is mounted is /pod, and this is another one.
        let other = groups("0::/pod2/c\n", &hierarchies);
        assert_eq!(other.first().and_then(|group| group.to_str()), Some("/sys/fs/cgroup/unified/pod2/c"));
    }
}
