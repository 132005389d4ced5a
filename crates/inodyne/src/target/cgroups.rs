//! Control groups: where they are, what they are called, and which processes are in them (cgroups(7)).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where control groups usually are.
pub const CGROUPS: &str = "/sys/fs/cgroup";
/// The members of a control group, in its directory.
const MEMBERS: &str = "cgroup.procs";
/// The version 1 hierarchies in which groups are named for people; they come before those of single controllers.
const NAMING: [&str; 2] = ["unified", "systemd"];

/// The directory of a control group, by its path or by its path below the usual mount point; nothing if there is none.
pub fn at(path: &Path) -> Option<PathBuf> {
    let below = Path::new(CGROUPS).join(path.strip_prefix("/").unwrap_or(path));
    [path.to_owned(), below].into_iter().find(|path| is_one(path))
}

/// All groups whose directory has a matching name, but none below another of them, or below one that stands apart. A process is in one group
/// of each version 1 hierarchy: the groups returned are those of the first hierarchy in which anybody is in them.
pub fn called(is_meant: &dyn Fn(&str) -> bool, stands_apart: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let found = hierarchies(Path::new(CGROUPS)).into_iter().map(|root| {
        let mut groups = Vec::new();
        below(&root, is_meant, stands_apart, &mut groups);
        groups
    });
    let mut found: Vec<Vec<PathBuf>> = found.filter(|groups| !groups.is_empty()).collect();
    let inhabited = found.iter().position(|groups| groups.iter().any(|group| is_inhabited(group)));
    if found.is_empty() { Vec::new() } else { found.swap_remove(inhabited.unwrap_or(0)) }
}

/// The processes of a group and of all groups below it. A group below it that disappears meanwhile has none.
///
/// # Errors
/// The group itself is gone, or does not say: the kernel lists no processes for a threaded group.
pub fn members(path: &Path, pids: &mut BTreeSet<u32>) -> io::Result<()> {
    let listed = fs::read_to_string(path.join(MEMBERS))?;
    // A process that is not in our PID namespace has the number 0.
    pids.extend(listed.lines().filter_map(|pid| pid.parse::<u32>().ok()).filter(|pid| *pid != 0));
    for below in directories(path) {
        drop(members(&below, pids));
    }
    Ok(())
}

fn is_one(path: &Path) -> bool {
    path.join(MEMBERS).is_file()
}

fn is_inhabited(group: &Path) -> bool {
    let mut pids = BTreeSet::new();
    members(group, &mut pids).is_ok() && !pids.is_empty()
}

/// The version 2 hierarchy if it is mounted, otherwise those that are mounted side by side.
fn hierarchies(root: &Path) -> Vec<PathBuf> {
    if is_one(root) {
        return vec![root.to_owned()];
    }
    let mut all: Vec<PathBuf> = directories(root).filter(|path| is_one(path)).collect();
    let rank = |path: &PathBuf| NAMING.iter().position(|name| path.ends_with(name)).unwrap_or(NAMING.len());
    all.sort_by(|one, other| (rank(one), one).cmp(&(rank(other), other)));
    all
}

fn below(path: &Path, is_meant: &dyn Fn(&str) -> bool, stands_apart: &dyn Fn(&str) -> bool, groups: &mut Vec<PathBuf>) {
    for directory in directories(path) {
        let is = |what: &dyn Fn(&str) -> bool| directory.file_name().and_then(|name| name.to_str()).is_some_and(what);
        if is(is_meant) {
            groups.push(directory);
        } else if !is(stands_apart) {
            below(&directory, is_meant, stands_apart, groups);
        }
    }
}

/// The directories in this one, without following links: in version 1, controllers that share a hierarchy have links to it.
fn directories(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_searched_in_an_order_and_links_are_not_followed() {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["blkio", "systemd", "unified", "none"] {
            fs::create_dir(root.path().join(name)).expect("a directory");
            if name != "none" {
                fs::write(root.path().join(name).join(MEMBERS), "").expect("a file");
            }
        }
        std::os::unix::fs::symlink("blkio", root.path().join("alias")).expect("a link");
        let names = |all: Vec<PathBuf>| -> Vec<String> {
            all.iter().map(|path| path.strip_prefix(root.path()).expect("below").display().to_string()).collect()
        };
        assert_eq!(names(hierarchies(root.path())), ["unified", "systemd", "blkio"]);
        fs::write(root.path().join(MEMBERS), "").expect("a file");
        assert_eq!(hierarchies(root.path()), [root.path()]);
        fs::create_dir_all(root.path().join("systemd/a.slice/web.service/web.service")).expect("directories");
        let mut groups = Vec::new();
        fs::create_dir_all(root.path().join("systemd/apart.scope/system.slice/web.service")).expect("directories");
        below(root.path(), &|name| name == "web.service", &|name| name == "apart.scope", &mut groups);
        assert_eq!(names(groups), ["systemd/a.slice/web.service"]);
    }
}
