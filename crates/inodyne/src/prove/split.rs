//! A command that ends in a list of files becomes several that run side by side, each with its part of the list.
//!
//! Which words are files cannot be looked up, since the place does not exist yet. So a word counts as one if it contains a slash and does
//! not begin with a dash: `grep -i x a/1 a/2` has two, and keeps its pattern. A pattern, a script, or an option's value may have a slash as
//! well: then it comes first, and what is known of the program says whether it is one, otherwise its directory does. Only what reads each of
//! its files is split: the last one may be where `cp` copies to, and what `tar` makes of parts is not what it makes of all.

use inodyne_model::syscall::plain_name;
use inodyne_model::trace::Trace;

/// The kernel accepts no longer word on a command line (MAX_ARG_STRLEN in include/uapi/linux/binfmts.h).
const LONGEST_SCRIPT: usize = 131_071;

/// Programs that read each of the files that they are given, and write to their standard output only.
const READERS: &[&str] = &[
    "ag",
    "b2sum",
    "base64",
    "bzgrep",
    "cat",
    "cksum",
    "cut",
    "egrep",
    "fgrep",
    "file",
    "grep",
    "head",
    "hexdump",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "nm",
    "objdump",
    "od",
    "readelf",
    "rg",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "size",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "wc",
    "xxhsum",
    "xzcat",
    "xzgrep",
    "zcat",
    "zgrep",
    "zstdcat",
];

/// Of these, those that end with 1 where they find nothing, and with more where something is wrong.
const SEEKERS: &[&str] = &["ag", "egrep", "fgrep", "grep", "rg", "xzgrep", "zgrep"];

/// Programs, besides seekers, whose first word that is no option is no file to read, but says what to do with those that follow.
const LED: &[&str] = &[
    "awk", "bash", "dash", "gawk", "jq", "lua", "mawk", "nawk", "node", "perl", "php", "python", "python3", "ruby",
    "sed", "sh", "zsh",
];

/// What a script of parts begins with: variables of the environment may have these names.
const BEGIN: &str = "unset parts status code";
/// How it ends: as one of its parts that fails.
const END: &str = "for part in $parts; do wait $part || status=$?; done; exit ${status:-0}";
/// The same for seekers: it has found something if one of its parts has.
const END_OF_SEARCH: &str = "status=1; for part in $parts; do wait $part; code=$?; \
    if [ $code -gt 1 ]; then status=$code; elif [ $code$status = 01 ]; then status=0; fi; done; exit $status";

/// A shell command that runs this many parts, and ends as the whole command would.
pub fn over(argv: &[String], workers: usize, only_reads: bool) -> Result<Vec<String>, String> {
    let is_file = |word: &&String| word.contains('/') && !word.starts_with('-');
    let list = argv.iter().skip(1).rev().take_while(is_file).count();
    let program = argv.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let (head, files) = argv.split_at(argv.len() - list);
    let (head, files) = argv.split_at(head.len() + usize::from(is_led_by_first(program, head, files)));
    if files.len() < workers * 2 {
        return Err("the command does not end in a list of files, so it cannot be split".to_owned());
    }
    if !only_reads && !READERS.contains(&program) {
        return Err(format!("it is not known whether {program} only reads its files, so it is not split"));
    }
    if !is_list(program, head, files) {
        return Err(format!("it is not known whether {} is one of the files, so the command is not split", files[0]));
    }
    // It ends at the first thing that it finds.
    let is_quiet = |word: &String| match word.strip_prefix("--") {
        Some(long) => matches!(long, "quiet" | "silent"),
        None => word.starts_with('-') && word.contains('q'),
    };
    if SEEKERS.contains(&program) && head.iter().any(is_quiet) {
        return Err(format!("{program} that prints nothing need not read all of its files, so it is not split"));
    }
    let head = quoted(head);
    let parts = files
        .chunks(files.len().div_ceil(workers))
        .map(|part| format!("{head} {} & parts=\"$parts $!\"", quoted(part)));
    let end = if SEEKERS.contains(&program) { END_OF_SEARCH } else { END };
    let lines = [BEGIN.to_owned()].into_iter().chain(parts).chain([end.to_owned()]);
    let script = lines.collect::<Vec<_>>().join("\n");
    if script.len() > LONGEST_SCRIPT {
        return Err("the command has too many files to be split by a shell".to_owned());
    }
    Ok(vec!["/bin/sh".to_owned(), "-c".to_owned(), script])
}

/// Whether the program's first word that is no option is no file.
fn is_led(program: &str) -> bool {
    SEEKERS.contains(&program) || LED.contains(&program)
}

/// Whether the first of these words is no file but the pattern or the script: nothing before it is, and no option holds one.
fn is_led_by_first(program: &str, head: &[String], files: &[String]) -> bool {
    let holds_one = |word: &String| {
        let short = ["-e", "-f"].iter().any(|option| word.len() > option.len() && word.starts_with(option));
        short || ["--expression=", "--file=", "--regexp="].iter().any(|option| word.starts_with(option))
    };
    let is_option = |word: &String| word.starts_with('-') && !holds_one(word);
    is_led(program) && !files.is_empty() && head.iter().skip(1).all(is_option)
}

/// Whether the first of these words is a file like the others. What comes after an option may be its value, and of a program that nobody
/// knows the first word may be anything: there it has to lie in a directory with another one.
fn is_list(program: &str, head: &[String], files: &[String]) -> bool {
    let is_option = |word: &String| word.starts_with('-');
    let own = head.get(1..).unwrap_or_default();
    // The last one has a slash where it has just been told from the files.
    let is_told = |word: &String| !is_option(word) && word.contains('/');
    let is_known = match is_led(program) {
        true => own.first().is_some_and(|word| !is_option(word)) || own.last().is_some_and(is_told),
        false => READERS.contains(&program) && !own.last().is_some_and(is_option),
    };
    let directory = |word: &String| word.rsplit_once('/').map(|(directory, _)| directory.to_owned());
    let beside = || files.iter().skip(1).any(|file| directory(file) == directory(&files[0]));
    is_known || beside()
}

/// Whether a command has changed no names, and written next to nothing of what it has read.
pub fn only_reads(trace: &Trace) -> bool {
    /// What is printed about files is less than this part of them.
    const NEXT_TO_NOTHING: u64 = 20;
    const CHANGE: [&str; 22] = [
        "chmod",
        "chown",
        "creat",
        "fallocate",
        "fchmod",
        "fchown",
        "fremovexattr",
        "fsetxattr",
        "ftruncate",
        "lchown",
        "link",
        "lremovexattr",
        "lsetxattr",
        "mkdir",
        "mknod",
        "removexattr",
        "rename",
        "rmdir",
        "setxattr",
        "symlink",
        "truncate",
        "unlink",
    ];
    let made = || trace.syscalls.iter().filter(|call| call.calls > call.errors);
    let changes = |name: &str| CHANGE.iter().any(|change| name.starts_with(change));
    let bytes = |is_meant: fn(&str) -> bool| {
        made()
            .filter(|call| is_meant(plain_name(&call.name)))
            .filter_map(|call| call.bytes)
            .fold(0, u64::saturating_add)
    };
    let written = bytes(|name| name.starts_with("write") || name.starts_with("pwrite"));
    let read = bytes(|name| name.starts_with("read") || name.starts_with("pread"));
    let copies = |name: &str| matches!(name, "copy_file_range" | "sendfile" | "splice");
    let is_harmless = |name: &str| !changes(name) && !copies(name);
    made().all(|call| is_harmless(plain_name(&call.name))) && written < read / NEXT_TO_NOTHING
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use inodyne_model::syscall::{SyscallStats, returns_bytes};

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_worker_gets_its_part_and_the_rest_of_the_command() {
        let split = over(&words("grep -c it's a/1 a/2 a/3 a/4 a/5"), 2, false).unwrap();
        let expected = "unset parts status code\n\
             'grep' '-c' 'it'\\''s' 'a/1' 'a/2' 'a/3' & parts=\"$parts $!\"\n\
             'grep' '-c' 'it'\\''s' 'a/4' 'a/5' & parts=\"$parts $!\"\n";
        assert_eq!(split, ["/bin/sh", "-c", &format!("{expected}{END_OF_SEARCH}")]);
    }

    /// The code with which what a line is split into ends.
    fn ends(line: &str) -> Option<i32> {
        let split = over(&words(line), 2, false).unwrap();
        let mut shell = std::process::Command::new(&split[0]);
        let environment = [("parts", "1"), ("status", "active"), ("code", "x")];
        shell.args(&split[1..]).envs(environment).output().unwrap().status.code()
    }

    #[test]
    fn it_fails_as_one_of_its_parts_does() {
        assert_eq!(ends("cat /dev/null /dev/null /dev/null /dev/null"), Some(0));
        assert_eq!(ends("cat /dev/null/none /dev/null /dev/null /dev/null"), Some(1));
        assert_eq!(ends("cat /dev/null /dev/null /dev/null /dev/null/none"), Some(1));
    }

    #[test]
    fn a_search_has_found_something_if_one_of_its_parts_has() {
        let name = "/proc/self/comm";
        assert_eq!(ends(&format!("grep grep {name} /dev/null /dev/null /dev/null")), Some(0));
        assert_eq!(ends(&format!("grep grep /dev/null /dev/null /dev/null {name}")), Some(0));
        assert_eq!(ends("grep x /dev/null /dev/null /dev/null /dev/null"), Some(1));
        assert_eq!(ends(&format!("grep grep {name} /dev/null /dev/null /dev/null/none")), Some(2));
        assert_eq!(ends(&format!("grep grep /dev/null/none /dev/null /dev/null {name}")), Some(2));
    }

    #[test]
    fn a_pattern_or_a_script_with_a_slash_is_no_file() {
        let parts = |line: &str| {
            let split = over(&words(line), 2, true).unwrap();
            let part = |line: &str| Some(line.split_once(" & ")?.0.replace('\'', ""));
            split[2].lines().filter_map(part).collect::<Vec<_>>()
        };
        for head in [
            "grep x/y",
            "grep -c -e x/y",
            "grep -f pat/terns",
            "sed -n /x/p",
            "jq .a/.b",
            "python3 -B tools/count.py",
            "grep -ex/y",
            "cat -n",
            "cat",
            "own",
        ] {
            assert_eq!(
                parts(&format!("{head} a/1 a/2 a/3 a/4")),
                [format!("{head} a/1 a/2"), format!("{head} a/3 a/4")]
            );
        }
        for line in [
            "grep -A 3 x/y a/1 a/2 a/3 a/4",
            "cut -f 2 -d / a/1 a/2 a/3 a/4",
            "nice ./own a/1 a/2 a/3 a/4",
            "own x/y a/1 a/2 a/3 a/4",
        ] {
            let refused = over(&words(line), 2, true).unwrap_err();
            assert!(refused.contains("is one of the files"), "{line}: {refused}");
        }
        assert!(over(&words("grep x/y a/1 a/2 a/3"), 2, true).unwrap_err().contains("does not end in a list"));
    }

    #[test]
    fn what_ends_in_no_list_is_not_split() {
        for line in [
            "find .",
            "cat a/1 a/2",
            "tar cf x.tar ./a -v",
            "/bin/true",
            "cp s/1 s/2 s/3 s/4 d/",
            "/usr/bin/tar cf ./o.tar a/1 a/2 a/3 a/4",
            "grep -iq x a/1 a/2 a/3 a/4",
            "rg --quiet x a/1 a/2 a/3 a/4",
        ] {
            assert!(over(&words(line), 2, false).is_err(), "{line}");
        }
    }

    #[test]
    fn a_program_that_nobody_knows_is_split_if_it_was_seen_to_read_only() {
        let with = |calls: &[(&str, u64)]| {
            let call = |(name, bytes): &(&str, u64)| SyscallStats {
                calls: 1,
                bytes: returns_bytes(name).then_some(*bytes),
                ..SyscallStats::new((*name).to_owned())
            };
            only_reads(&Trace { syscalls: calls.iter().map(call).collect(), ..Trace::default() })
        };
        assert!(with(&[("openat", 0), ("read", 1_000_000), ("write", 40)]));
        for calls in [
            &[("read", 100), ("write", 100)][..],
            &[("read", 100), ("ftruncate", 0)],
            &[("read", 100), ("sendfile", 100)],
        ] {
            assert!(!with(calls), "{calls:?}");
        }
        assert!(
            over(&words("own a/1 a/2 a/3 a/4"), 2, true).is_ok()
                && over(&words("own a/1 a/2 a/3 a/4"), 2, false).is_err()
        );
    }
}
