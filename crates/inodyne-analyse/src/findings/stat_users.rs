//! Which programs need only the type of a directory entry, and which stat every entry in any case.
//!
//! A program that shows sizes or times gains nothing from types in directories: it stats each entry anyway. The
//! tables below are by program name and arguments; how each behaves was seen by counting its calls on a file system
//! with types, or read in its source where the line says so.

use inodyne_model::observed::Program;

/// What types in directories would do for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gain {
    /// It asks only for the type: with types the calls go away.
    Known,
    /// It is in no table.
    Unknown,
    /// It stats every entry in any case.
    None,
}

/// Programs seen to need only the type: calls for 30,000 files with types / without.
const TYPE_ONLY: &[&str] = &[
    "find",   // 3,055 / 33,055
    "bfs",    // 25 / 31,035
    "fd",     // 1,020 / 32,030
    "fdfind", // fd as Debian names it
    "ls",     // 2,043 / 33,053 (ls -R)
    "grep",   // 33,054 / 63,054 (grep -r)
    "rm",     // 3,042 / 33,042 (rm -rf)
    "git",    // 1,076 / 32,086 (git ls-files -o); tracked files are asked for before their directory is read
];

/// Programs that stat every entry, whatever their arguments.
const STAT_ALL: &[&str] = &[
    "du",    // sizes
    "rsync", // sizes and times
    "cp",    // modes of what it copies; source of coreutils
    "chown", // owners before; source of coreutils
    "chgrp", // as chown
    "chmod", // modes before; source of coreutils
    "tree",  // stats every entry; source of tree 2
    "zip",   // sizes and times; source of Info-ZIP
    "stat",  // its purpose
];

/// Programs that remove what is old.
const BY_AGE: &[&str] = &["systemd-tmpfiles", "tmpreaper", "tmpwatch"];

/// Options of `ls` that need more than a type: long forms, sizes, times, and marks or colours for executables.
const LS_SHORT: &str = "lgonstScuFZ";
const LS_LONG: &[&str] = &["--size", "--classify", "--color", "--full-time", "--sort=size", "--sort=time", "--context"];

/// Tests and actions of `find` that need more than a type.
const FIND_STAT: &[&str] = &[
    "-L",
    "-follow",
    "-size",
    "-empty",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-nouser",
    "-nogroup",
    "-links",
    "-used",
    "-samefile",
    "-ls",
    "-fls",
];

/// Tests of `find` by name, which are made first: what they reject is never looked at. How much that is, they do not say.
const FIND_NAMES: &[&str] = &["-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-prune"];

/// Fields of `find -printf` that need more than name and type.
const PRINTF_STAT: &str = "abcgGkmMnsStTuUACBDi";

/// What the program would gain.
pub(crate) fn gain(program: &Program) -> Gain {
    let mut words = program.args.iter().map(String::as_str);
    let called = base_name(words.next().unwrap_or(&program.file));
    let args: Vec<&str> = words.collect();
    let file = base_name(&program.file);
    // BusyBox stats every entry in `find` and `ls`; only these two read directories in bulk.
    if file == "busybox" || called == "busybox" {
        return Gain::None;
    }
    let stats = match called {
        "ls" => ls_stats(&args),
        "find" | "bfs" => return find_gain(&args),
        "tar" | "bsdtar" => tar_creates(&args),
        name => STAT_ALL.contains(&name),
    };
    match stats {
        true => Gain::None,
        false if TYPE_ONLY.contains(&called) => Gain::Known,
        false => Gain::Unknown,
    }
}

/// Whether a program that removes what it finds decides by size, age or owner: then the type is not enough for it.
pub(crate) fn decides_by_attributes(program: &Program) -> bool {
    let mut words = program.args.iter().map(String::as_str);
    let called = base_name(words.next().unwrap_or(&program.file));
    let args: Vec<&str> = words.collect();
    match called {
        "find" | "bfs" => find_stats(&args),
        name => BY_AGE.contains(&name),
    }
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn ls_stats(args: &[&str]) -> bool {
    args.iter().take_while(|arg| **arg != "--").any(|arg| match arg.strip_prefix('-') {
        Some(long) if long.starts_with('-') => {
            *arg != "--color=never" && LS_LONG.iter().any(|option| arg.starts_with(option))
        }
        Some(short) => short.chars().any(|c| LS_SHORT.contains(c)),
        None => false,
    })
}

/// What the first tests let pass is looked at, with types or without: with `-type f` and a size, nearly every entry.
fn find_gain(args: &[&str]) -> Gain {
    if !find_stats(args) {
        return Gain::Known;
    }
    let is_of = |words: &[&str]| args.iter().any(|arg| words.contains(arg));
    let types: Vec<&str> = args.windows(2).filter(|pair| pair[0] == "-type").map(|pair| pair[1]).collect();
    let lists_files = types.iter().any(|types| types.contains('f'));
    if is_of(FIND_NAMES) || is_of(&["-o", "-or", "!", "-not", ","]) {
        return Gain::Unknown;
    }
    if types.is_empty() || lists_files { Gain::None } else { Gain::Known }
}

fn find_stats(args: &[&str]) -> bool {
    let prints = |pair: &[&str]| matches!(pair[0], "-printf" | "-fprintf") && format_stats(pair[1]);
    args.iter().any(|arg| FIND_STAT.contains(arg) || arg.starts_with("-newer"))
        || args.iter().any(|arg| matches!(*arg, "-anewer" | "-cnewer"))
        || args.windows(2).any(prints)
}

fn format_stats(format: &str) -> bool {
    let after_percent = format.split('%').skip(1);
    // Flags and widths stand between the percent sign and the field.
    let field =
        |part: &str| part.trim_start_matches(|c: char| "-+ #.".contains(c) || c.is_ascii_digit()).chars().next();
    after_percent.filter_map(field).any(|field| PRINTF_STAT.contains(field))
}

fn tar_creates(args: &[&str]) -> bool {
    let creates = |word: &str| word.chars().any(|c| matches!(c, 'c' | 'r' | 'u'));
    let old_style = args.first().is_some_and(|first| !first.starts_with('-') && creates(first));
    let short = |arg: &&str| arg.strip_prefix('-').is_some_and(|s| !s.starts_with('-') && creates(s));
    let long = |arg: &&str| matches!(*arg, "--create" | "--append" | "--update" | "--diff" | "--compare");
    old_style || args.iter().any(|arg| short(arg) || long(arg))
}

#[cfg(test)]
mod tests {
    use inodyne_model::Nanos;

    use super::*;

    fn gain_of(line: &str) -> Gain {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let file = format!("/usr/bin/{}", args[0]);
        gain(&Program { thread: 1, pid: 1, at_ns: Nanos::ZERO, file, args, args_truncated: false })
    }

    #[test]
    fn the_type_is_all_they_need() {
        for line in [
            "find .",
            "find . -name *.c",
            "find . -type d -mtime +7",
            "bfs . -type f",
            "find . -printf %p\\n",
            "ls -R",
            "ls -aR",
            "ls --color=never -R",
            "rm -rf x",
            "grep -r x",
            "git status",
            "find . -printf %-10y%f",
        ] {
            assert_eq!(gain_of(line), Gain::Known, "{line}");
        }
    }

    #[test]
    fn they_stat_every_entry_anyway() {
        for line in [
            "du -s .",
            "ls -lR",
            "ls --color=auto -R",
            "ls -R -F",
            "tar cf x .",
            "tar -cf x .",
            "tar --create .",
            "rsync -a x y",
            "cp -a x y",
            "find . -newer x",
            "find . -size +1",
            "find . -type f -newer x",
            "find . -type f,d -size +1k",
            "bfs . -type f -size +1k",
            "find . -printf %10s\\n",
            "find . -ls",
            "chown -R a b",
            "busybox find .",
            "find -L .",
        ] {
            assert_eq!(gain_of(line), Gain::None, "{line}");
        }
    }

    #[test]
    fn what_is_old_or_large_is_known_by_its_attributes() {
        let program = |line: &str| {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Program { thread: 1, pid: 1, at_ns: Nanos::ZERO, file: args[0].clone(), args, args_truncated: false }
        };
        for line in
            ["find x -mtime +7 -delete", "find x -type f -size +1M -delete", "/usr/bin/systemd-tmpfiles --clean"]
        {
            assert!(decides_by_attributes(&program(line)), "{line}");
        }
        for line in ["find x -delete", "find x -type f -delete", "rm -rf x", "busybox rm -rf x", "python3 clean.py"] {
            assert!(!decides_by_attributes(&program(line)), "{line}");
        }
    }

    #[test]
    fn of_others_nothing_is_known() {
        for line in [
            "python3 walk.py",
            "tar xf x",
            "mytool",
            "find . -name *.c -size +1k",
            "find . -type d -o -size +1k",
            "find . ! -type d -size +1k",
        ] {
            assert_eq!(gain_of(line), Gain::Unknown, "{line}");
        }
    }
}
