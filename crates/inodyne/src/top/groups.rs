//! Which control group a process is in, as the kernel says (cgroups(7)).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::num::NonZero;

use inodyne_model::activity::{Activity, ProcessActivity};

/// Groups of processes that were asked for. A process that moves into another group later stays where it was first seen, as long as
/// it is in every look.
#[derive(Debug, Default)]
pub struct Groups(HashMap<u32, String>);

impl Groups {
    /// The path of its group, below where groups are; for a process that has ended, what is already known.
    pub fn of(&mut self, process: &ProcessActivity) -> String {
        if let Some(known) = self.0.get(&process.pid) {
            return known.clone();
        }
        let pid = process.pid_here.map_or(0, NonZero::get);
        // Names of groups need not be UTF-8.
        let text = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let Some(group) = named(&text) else { return "(ended)".to_owned() };
        self.0.insert(process.pid, group.to_owned());
        group.to_owned()
    }

    /// Forgets processes that are not in this look: their numbers may be given to other processes.
    pub fn keep(&mut self, activity: &Activity) {
        let pids: HashSet<u32> = activity.processes.iter().map(|process| process.pid).collect();
        self.0.retain(|pid, _| pids.contains(pid));
    }
}

/// The version 2 group; for version 1, that of the hierarchy that is there for names, or the first in which it is not the root.
fn named(text: &str) -> Option<&str> {
    let groups = || text.lines().filter_map(|line| line.splitn(3, ':').nth(2).map(|path| (line, path)));
    let version_2 = groups().find(|(line, path)| line.starts_with("0::") && *path != "/");
    let systemd = || groups().find(|(line, path)| line.contains(":name=systemd:") && *path != "/");
    let any = || groups().find(|(_, path)| *path != "/");
    version_2.or_else(systemd).or_else(any).or_else(|| groups().next()).map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use inodyne_model::activity::Account;

    use super::*;

    #[test]
    fn who_is_in_no_look_and_who_has_ended_is_not_kept() {
        let process = |pid, pid_here| ProcessActivity {
            pid,
            pid_here: NonZero::new(pid_here),
            comm: String::new(),
            account: Account::default(),
        };
        let mut groups = Groups::default();
        let own = groups.of(&process(1, std::process::id()));
        assert_eq!(groups.of(&process(1, 0)), own, "it is kept");
        assert_eq!(groups.of(&process(2, 0)), "(ended)");
        assert_eq!(groups.0.len(), 1);
        groups.keep(&Activity::default());
        assert_eq!(groups.of(&process(1, 0)), "(ended)");
    }

    #[test]
    fn the_group_that_tells_most_is_taken() {
        assert_eq!(named("0::/system.slice/db.service\n"), Some("/system.slice/db.service"));
        assert_eq!(named("3:cpu:/web\n1:name=systemd:/user.slice\n0::/\n"), Some("/user.slice"));
        assert_eq!(named("3:cpu:/web\n2:io:/\n"), Some("/web"));
        assert_eq!(named("0::/\n"), Some("/"));
        assert_eq!(named(""), None);
    }
}
