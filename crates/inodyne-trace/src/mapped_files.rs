//! Which files the command's processes have mapped as code, seen while they live: there their functions' names are looked for
//! when they are gone.
//!
//! Seen now and then, so a process of a few milliseconds may be missed. Its program is known from its `execve` all the same, and
//! most libraries from the linker's cache (`user_symbols`).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// From one look to the next.
const PERIOD: Duration = Duration::from_millis(50);
/// Processes that one look is taken at.
const MOST_PROCESSES: usize = 32;
/// Files that are kept. More than any program maps; a limit all the same.
const MOST_FILES: usize = 8_192;

/// The files seen so far.
#[derive(Debug, Default)]
pub struct MappedFiles {
    files: BTreeSet<PathBuf>,
    last: Option<Instant>,
}

impl MappedFiles {
    /// Looks at these processes, where it is time to.
    pub fn look(&mut self, processes: impl Iterator<Item = u32>) {
        if self.last.is_some_and(|last| last.elapsed() < PERIOD) || self.files.len() >= MOST_FILES {
            return;
        }
        let mut seen = BTreeSet::new();
        for pid in processes {
            if seen.len() == MOST_PROCESSES {
                break;
            }
            if seen.insert(pid) {
                self.files.extend(mapped_in(&pid.to_string()));
            }
        }
        self.last = Some(Instant::now());
    }

    /// All of them.
    pub fn into_files(self) -> BTreeSet<PathBuf> {
        self.files
    }
}

/// The files that a process has mapped as code; none where it is gone.
pub fn mapped_in(process: &str) -> BTreeSet<PathBuf> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.lines().filter_map(code_file).collect()
}

/// `7f12-7f34 r-xp 00001000 08:01 1234   /usr/lib/libc.so.6`; none where the file has no name any more.
fn code_file(line: &str) -> Option<PathBuf> {
    let is_code = line.split(' ').nth(1).is_some_and(|rights| rights.contains('x'));
    let path = &line[line.find('/')?..];
    (is_code && !path.ends_with(" (deleted)")).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_nothing_else() {
        let lines = [
            "7f00-7f10 r-xp 00001000 08:01 12   /usr/lib/a b.so",
            "7f00-7f10 r--p 00001000 08:01 12   /usr/lib/data",
            "7f00-7f10 r-xp 00001000 08:01 12   /tmp/gone.so (deleted)",
            "7f00-7f10 r-xp 00000000 00:00 0    [vdso]",
        ];
        let files: Vec<PathBuf> = lines.iter().filter_map(|line| code_file(line)).collect();
        assert_eq!(files, [PathBuf::from("/usr/lib/a b.so")]);
    }

    #[test]
    fn our_own_program_is_seen_once_in_a_while() {
        let mut mapped = MappedFiles::default();
        mapped.look([std::process::id()].into_iter());
        mapped.look([1].into_iter());
        let own = std::env::current_exe().expect("this program has a name");
        assert!(mapped.into_files().contains(&own));
    }
}
