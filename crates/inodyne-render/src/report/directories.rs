//! Directories and what was done below them, as a tree of those that matter.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::Nanos;

use super::file_sum::Sum;

/// A directory is shown if this part of all time was spent below it.
const LEAST_SHARE: f64 = 0.05;

/// Directories that have a row, in addition to those that contain them.
const MOST_ROWS: usize = 16;

/// What is deeper belongs to the directory of this depth: a path of a damaged recording may have any number of names, and a tree takes
/// stack for each level.
const DEEPEST: usize = 512;

/// A directory, or several, each of which is all that the one before it contains: `usr/share`.
#[derive(Debug)]
pub(super) struct Directory {
    /// How many shown directories it is in.
    pub(super) depth: usize,
    pub(super) name: String,
    /// Of all that is below.
    pub(super) sum: Sum,
    /// Whether it has a row; otherwise others have so much more time that there is no room for it.
    pub(super) is_shown: bool,
}

/// A directory, its own use, and what is in it.
#[derive(Default)]
pub(crate) struct Tree<'a> {
    /// Of all that is below.
    pub(crate) sum: Sum,
    /// Of the directory itself, and of files in it.
    own_ns: Nanos,
    below: BTreeMap<&'a str, Tree<'a>>,
}

impl<'a> Tree<'a> {
    /// The one directory in it, if it contains nothing else.
    fn only(&self) -> Option<(&'a str, &Tree<'a>)> {
        let (name, below) = self.below.iter().next()?;
        (self.below.len() == 1 && self.own_ns == Nanos::ZERO).then_some((*name, below))
    }

    /// The directory, or the first one below it that does not contain just one directory, and its path from here on.
    pub(crate) fn branching(&self, mut path: String) -> (String, &Tree<'a>) {
        let mut tree = self;
        while let Some((name, below)) = tree.only() {
            path = joined(&path, name);
            tree = below;
        }
        (path, tree)
    }

    /// The directories in it, those with the most time first.
    pub(crate) fn below(&self) -> Vec<(&'a str, &Tree<'a>)> {
        let mut below: Vec<_> = self.below.iter().map(|(name, below)| (*name, below)).collect();
        below.sort_by_key(|(_, below)| Reverse(below.sum.wall_ns));
        below
    }
}

/// A path with another name appended.
pub(crate) fn joined(path: &str, name: &str) -> String {
    let slash = if path.ends_with('/') { "" } else { "/" };
    format!("{path}{slash}{name}")
}

/// The directories that contain these files and directories.
pub(super) fn tree<'a>(by_path: &[(&'a str, Sum)]) -> Tree<'a> {
    let mut root = Tree::default();
    for (path, sum) in by_path {
        let is_directory = sum.files == 0;
        let path = path.trim_end_matches('/');
        let directory = if is_directory { path } else { path.rsplit_once('/').map_or("", |(directory, _)| directory) };
        let mut node = &mut root;
        node.sum.add(sum);
        // A path that is cut begins with `…`, not with a slash.
        for name in directory.split('/').filter(|name| !name.is_empty()).take(DEEPEST) {
            node = node.below.entry(name).or_default();
            node.sum.add(sum);
        }
        node.own_ns += sum.wall_ns;
    }
    root
}

/// The directories of a tree that matter, from the outermost to the innermost, siblings with the most time first.
pub(super) fn directories(root: &Tree<'_>) -> Vec<Directory> {
    let least = Nanos((root.sum.wall_ns.as_secs_f64() * LEAST_SHARE * 1e9) as u64);
    let mut rows = Vec::new();
    add(&mut rows, "/", root, 0, least);
    choose(&mut rows);
    rows
}

/// Shows those with the most time, and all directories that contain them.
fn choose(rows: &mut [Directory]) {
    let mut largest: Vec<usize> = (0..rows.len()).collect();
    largest.sort_by_key(|at| Reverse(rows[*at].sum.wall_ns));
    for mut at in largest.into_iter().take(MOST_ROWS) {
        // The parent of a directory comes before it, and is less deep.
        loop {
            rows[at].is_shown = true;
            let depth = rows[at].depth;
            let Some(above) = rows[..at].iter().rposition(|row| row.depth < depth) else { break };
            at = above;
        }
    }
}

fn add(rows: &mut Vec<Directory>, name: &str, tree: &Tree<'_>, depth: usize, least: Nanos) {
    // If everything is in one directory, that one is shown instead.
    let (name, tree) = tree.branching(name.to_owned());
    rows.push(Directory { depth, name, sum: tree.sum, is_shown: false });
    for (name, below) in tree.below().into_iter().filter(|(_, below)| below.sum.wall_ns >= least.max(Nanos(1))) {
        add(rows, name, below, depth + 1, least);
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::files::FileUse;

    use super::*;

    fn shown(files: &[(&str, bool, u64)]) -> Vec<String> {
        let sums: Vec<(&str, Sum)> = files
            .iter()
            .map(|&(path, is_directory, ms)| {
                let wall_ns = Nanos(ms * 1_000_000);
                (path, Sum::of(&FileUse { is_directory, wall_ns, ..FileUse::default() }))
            })
            .collect();
        let line = |row: &Directory| {
            let ms = row.sum.wall_ns.0 / 1_000_000;
            format!("{}{} {ms} ms, {} files", "  ".repeat(row.depth), row.name, row.sum.files)
        };
        directories(&tree(&sums)).iter().filter(|row| row.is_shown).map(line).collect()
    }

    #[test]
    fn a_directory_holds_all_that_is_below_it_and_small_ones_are_left_out() {
        let files = [
            ("/usr/lib/a.so", false, 10),
            ("/usr/lib/x/b.so", false, 30),
            ("/usr/share/c", false, 50),
            ("/usr/share/d", false, 8),
            ("/etc/passwd", false, 1),
            ("/usr/lib", true, 1),
        ];
        let expected = [
            "/ 100 ms, 5 files",
            "  usr 99 ms, 4 files",
            "    share 58 ms, 2 files",
            "    lib 41 ms, 2 files",
            "      x 30 ms, 1 files",
        ];
        assert_eq!(shown(&files), expected);
    }

    /// A directory in which many take a little each, and after it one that has more than any of these.
    #[test]
    fn those_with_most_time_are_shown_with_what_they_are_in() {
        let many: Vec<String> = (0..18).map(|at| format!("/a/{at}/file")).collect();
        let mut files: Vec<(&str, bool, u64)> = many.iter().map(|path| (path.as_str(), false, 52)).collect();
        files.push(("/late/one", false, 60));
        let shown = shown(&files);
        assert_eq!(shown.len(), MOST_ROWS, "{shown:#?}");
        assert_eq!(shown[..2], ["/ 996 ms, 19 files", "  a 936 ms, 18 files"]);
        assert_eq!(shown.last().map(String::as_str), Some("  late 60 ms, 1 files"));
    }

    /// However deep it is.
    #[test]
    fn the_way_to_one_that_is_shown_is_shown() {
        let row = |depth, ms| Directory {
            depth,
            name: String::new(),
            sum: Sum { wall_ns: Nanos(ms), ..Sum::default() },
            is_shown: false,
        };
        let mut rows = vec![row(0, 0), row(1, 0), row(2, 0), row(1, 0), row(2, 0), row(3, 0)];
        // As many as have a row, all of them with more time than those above.
        rows.extend((0..MOST_ROWS as u64 - 1).map(|_| row(4, 1)));
        rows[2].sum.wall_ns = Nanos(1);
        choose(&mut rows);
        assert!(rows.iter().all(|row| row.is_shown), "{rows:#?}");
        rows.push(row(4, 0));
        choose(&mut rows);
        assert!(!rows.last().expect("it was just added").is_shown);
    }

    /// As only a damaged recording has it.
    #[test]
    fn a_path_without_end_is_no_reason_to_run_out_of_stack() {
        let path = "/a".repeat(200_000);
        let shown = shown(&[(path.as_str(), false, 10), ("/a/b", false, 10)]);
        let [first, second] = &shown[..] else { panic!("{} rows", shown.len()) };
        assert_eq!(first, "/a 20 ms, 2 files");
        assert!(second.starts_with("  a/a/a/") && second.ends_with("/a 10 ms, 1 files"), "{second}");
        assert_eq!(second.matches('/').count(), DEEPEST - 2);
    }

    #[test]
    fn directories_that_hold_nothing_else_are_one_row() {
        let files = [("/a/b/c/one", false, 10), ("/a/b/c/d/two", false, 10)];
        assert_eq!(shown(&files), ["/a/b/c 20 ms, 2 files", "  d 10 ms, 1 files"]);
        assert_eq!(shown(&[]), ["/ 0 ms, 0 files"]);
        assert_eq!(shown(&[("/", true, 3)]), ["/ 3 ms, 0 files"]);
        assert_eq!(shown(&[("…/deep/file", false, 3)]), ["/…/deep 3 ms, 1 files"]);
    }
}
