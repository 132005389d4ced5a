//! `inodyne rm` against the system's GNU rm: the same tree, arguments and answers, then the same exit code, the same
//! messages and the same files left.
//!
//! Lines are compared in sorted order, since a parallel delete may name two failures the other way round.

mod support;

use std::{
    fs,
    io::Write,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
    process::{Command, Stdio},
};

use inodyne_model::random::Random;
use support::state::seed;

/// What one command did.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    stdout: Vec<String>,
    stderr: Vec<String>,
    left: Vec<String>,
}

struct Case<'a> {
    /// A shell script that makes the files.
    setup: &'a str,
    /// Shell words: what stands after `rm`.
    arguments: &'a str,
    stdin: &'a str,
    locale: &'a str,
}

fn outcome(program: &str, case: &Case<'_>) -> Outcome {
    let place = tempfile::tempdir().expect("a temporary directory");
    let shell = |script: String| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).current_dir(place.path()).env("LC_ALL", case.locale).env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("sh runs");
        // A program that asks nothing may be gone before it could read.
        let _ = child.stdin.take().expect("piped").write_all(case.stdin.as_bytes());
        child.wait_with_output().expect("sh ends")
    };
    let made = shell(case.setup.into());
    assert!(made.status.success(), "{}: {}", case.setup, String::from_utf8_lossy(&made.stderr));
    let output = shell(format!("exec {program} {}", case.arguments));
    let lines = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace("'inodyne rm", "'rm");
        let mut lines: Vec<_> = text.lines().map(ToOwned::to_owned).collect();
        lines.sort();
        lines
    };
    let mut left = Vec::new();
    list(place.path(), place.path(), &mut left);
    left.sort();
    Outcome { code: output.status.code(), stdout: lines(&output.stdout), stderr: lines(&output.stderr), left }
}

fn list(root: &Path, directory: &Path, left: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let shown = path.strip_prefix(root).expect("below").as_os_str().as_bytes().escape_ascii().to_string();
        let metadata = fs::symlink_metadata(&path).expect("is there");
        left.push(format!("{shown} {:o}", metadata.mode()));
        if metadata.is_dir() {
            list(root, &path, left);
        }
    }
}

/// Runs all cases and names every one that differs.
#[track_caller]
fn all_same<'a>(cases: impl IntoIterator<Item = Case<'a>>) {
    let mut differences = String::new();
    for case in cases {
        let gnu = outcome("rm", &case);
        let ours = outcome(&format!("{} rm", env!("CARGO_BIN_EXE_inodyne")), &case);
        if gnu != ours {
            let Case { setup, arguments, stdin, locale } = &case;
            differences +=
                &format!("rm {arguments} ({locale}, {stdin:?} after {setup})\n gnu  {gnu:?}\n ours {ours:?}\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

/// The same files, different arguments: `all` separates them by `|`.
fn arguments<'a>(setup: &'a str, all: &'a str) -> impl Iterator<Item = Case<'a>> {
    all.split('|').map(move |arguments| Case { setup, arguments: arguments.trim(), stdin: "", locale: "C" })
}

const TREE: &str =
    "mkdir -p d/e/f empty && touch a b d/x d/e/y d/e/f/z && ln -s a link && ln -s d dirlink && ln -s no dangling
    echo 1 > full && mkfifo pipe";

#[test]
fn files_and_directories() {
    all_same(arguments(
        TREE,
        "a | a b | -f a | -r a | link | dangling | dirlink | -r dirlink | d | -f d | -d d | -d empty | -r d | -R d | -rf d
        | -fr d | -d -r d | --recursive d | -rd d empty | -r d empty a link | -rf * | -r ./d | -r d/ | -r d// | -r d/e
        | -rfv d .//d/e | -rfv d d/x | -rfv d/e/f ./d | -rfv d/e d/e/f d d/x | -rfv d d | -rfv d $PWD/d/e
        | -rf d/e/f/../../x | empty | -r empty/ | a d | -v a | -rv d | -rfv d/ | -dv empty | -rv d//e/ | -rv a d b",
    ));
}

/// What an operand is may depend on those before it, when it is reached through a link.
#[test]
fn links_on_the_way_go_when_it_is_their_turn() {
    all_same(arguments(
        "mkdir -p d/e/f o/i/j && touch d/x d/e/f/z o/i/j/z && ln -s d dirlink && ln -s ../o d/out && ln -s dirlink two",
        "-rf dirlink/e dirlink | -rfv dirlink/e dirlink | -rf dirlink dirlink/e | -rf d/out/i d | -rf d d/out/i | -rf two/e dirlink
        | -rf two/e two | -rf dirlink/e dirlink/x dirlink d/out | -rf d/out/i/j d/out/i d/out o | -rf dirlink/out/i dirlink/out d
        | -rf ./dirlink/e ./dirlink | -rf dirlink//e dirlink o | -rf d/e dirlink",
    ));
}

#[test]
fn what_is_missing_or_wrong() {
    all_same(arguments(
        TREE,
        "nope | -f nope | -r nope | -rf nope | nope a | a nope b | -r d d | -rf d d | -r d d/e | nope/a | -f nope/a | a/b
        | -f a/b | a/ | -f a/ | -r a/ | nope// | a// | '' | -f '' | -rf '' | 'a b' | dangling/ | -f dangling/ | -r dangling/
        | -rf dangling// a",
    ));
}

#[test]
fn dots_are_refused() {
    all_same(arguments(
        TREE,
        ". | .. | -r . | -r .. | -rf . | -rf .. | -r ./ | -rf d/. | -rf d/.. | -rf d/. a | -rf .// | -d . | -rf d/../d | -rf d/ d/. | -rf d d/e/.. a | -rf a d/. | -rfv d d/../a | -rf d/e d/e/../x d/e/../../b",
    ));
}

#[test]
fn options_are_parsed_alike() {
    all_same(arguments(
        TREE,
        "| -f | -r | -rf | -- | -f -- | -x | -rx a | --nope | --nope=1 a | --v=1 a | --rec d | --r d | --ver a | --verb a | --v a
        | --f nope | --force=1 a | --interactive=nope a | --interactive= a | --interactive=n a | --interactive=never a
        | --interactive=no nope | --inter=once a | --no-preserve a | --preserve-root a | --preserve-root=all -r d
        | --preserve-root=some a | --one-file-system -r d | a -f nope | -- -f | -r -- d | d -rf | -frv d | -R -f -v d | -
        | -if a | --dir empty | --d empty | --o -r d | --p a | --=x | ---pres a | ---p=1 a | -d / | -d // | -d /// | ///
        | --preserve-root= a | --preserve-root=all --no-preserve-root -r d | -x -- a",
    ));
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    all_same(arguments(
        TREE,
        "-v a >/dev/full | -rv d b >/dev/full | -r d >/dev/full | -v nope >/dev/full | -v nope a >/dev/full",
    ));
}

#[test]
fn names_that_look_like_options() {
    let setup = "touch ./-foo ./-f ./--help ./-- && mkdir ./-r";
    all_same(arguments(setup, "-foo | -- -foo | ./-foo | -- -f | -- -- | -r -- -r | -x -- -foo"));
    let words = ["-f oo", "-it's", "--a=b", "-x", "-a;b", "-w*", "-\u{e4}", "-[", "-{}", "-~", "-it's $5"];
    for word in words.map(|word| format!("'{}'", word.replace('\'', "'\\''"))) {
        let setup = format!("touch -- {word}");
        for locale in ["C", "C.UTF-8"] {
            let arguments = format!("-W {word}");
            all_same([Case { setup: &setup, arguments: &arguments, stdin: "", locale }]);
        }
    }
}

#[test]
fn odd_names_are_quoted_alike() {
    // Separated by the one byte that no name can hold.
    let names = "new\nline\0tab\tbed\0it's\0it's \"both\"\0do$llar\0back\\slash\0#hash\0it's#hash\0~it's\0a=b's\0b@d's\0x{y}'s\0\
        \u{1}ctrl\0ende\n\0\nanfang\0a\n\nb\0ümlaut\0日本\0it's ümlaut\0x\u{200e}y\0\u{2028}\0\u{e000}\0\u{ffff}\0nb\u{a0}sp\0e\u{301}\0star*\0 \0a b\0[x]'\0\
        !'\0%'\0^'\0?'\0<'\0;'\0\x7f\0'\0''\0it's\n\0a'b\n\0\n'\0\n'a\0a\n'b\0'\n\0\n'x\n\0a\nb'c\nd\0\u{7}\u{8}\u{b}\u{c}\r";
    let words: Vec<_> = names.split('\0').map(|name| format!("'{}'", name.replace('\'', "'\\''"))).collect();
    for word in &words {
        let missing = format!("-- {word}");
        let (setup, verbose) = (format!("mkdir -- {word} && touch -- {word}/{word}"), format!("-rv -- {word}"));
        for locale in ["C", "C.UTF-8"] {
            all_same([
                Case { setup: "true", arguments: &missing, stdin: "", locale },
                Case { setup: &setup, arguments: &verbose, stdin: "", locale },
            ]);
        }
    }
    for locale in ["C.utf8", "POSIX", "xx_XX.UTF-8", ""] {
        all_same([Case { setup: "true", arguments: "ümlaut", stdin: "", locale }]);
    }
    let broken = "\"$(printf 'a\\377b\\303')\"";
    all_same([Case { setup: "true", arguments: broken, stdin: "", locale: "C.UTF-8" }]);
}

#[test]
fn questions_and_answers() {
    // Arguments, then the answers.
    let dialogues = "-i a:y; -i a:n; -i a:; -i a:Y; -i a:yes please; -i a: y; -i a b:n y; -i link:y; -i dangling:y; -i d:y; \
        -ri d:n; -ri d:y y y y y y y y y y; -ri d:y n n n n n; -ri d:y y n y y y; -ri empty:y; -ri empty:n; -di empty:y; \
        -riv d empty:y y y y y y y y y y; -I a b:; -I a b link dangling:n; -I a b link dangling:y; -rI d:y; -rI d:n; \
        -rI a d:; -rfI d:y; -rIf d:; --interactive -r d:n; --interactive=once -r d a:y; -i full:y; -i pipe:n; -i nope:; \
        -r -i d/:y n n n; -i a nope b:y y; -ri d d:y y y y y y y y y; -ir --one-file-system empty a:y y; \
        -ri d:y y y n y y y y y; -ri d:y y y y y n y y y y; -ri d:y n y y y y; -ri d:y y n n y y y y; -ri d:y y y n n n n n";
    for dialogue in dialogues.split("; ") {
        let (arguments, answers) = dialogue.split_once(':').expect("a colon");
        let stdin = answers.replace(' ', "\n");
        all_same([Case { setup: TREE, arguments, stdin: &stdin, locale: "C" }]);
    }
}

#[test]
fn where_ours_deliberately_differs() {
    // A link with a slash after it: GNU rm empties what it leads to, ours leaves it alone and says so.
    let case = Case { setup: TREE, arguments: "-rf dirlink/", stdin: "", locale: "C" };
    let ours = outcome(&format!("{} rm", env!("CARGO_BIN_EXE_inodyne")), &case);
    assert_eq!((ours.code, ours.stderr), (Some(1), vec!["rm: cannot remove 'dirlink/': Not a directory".to_string()]));
    assert!(ours.left.iter().any(|path| path.starts_with("d/e/f/z")));
}

/// The tests of GNU rm itself, as root and as nobody: what passes with GNU's passes with ours.
#[test]
fn gnus_own_tests_pass() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/gnu-rm-tests");
    let done = Command::new(script).arg(env!("CARGO_BIN_EXE_inodyne")).output().expect("the tests need python3");
    let (said, why) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}{why}");
    let passed = said.lines().last().and_then(|line| line.split(' ').next()?.parse::<u32>().ok());
    assert!(passed >= Some(60), "too few were run: {said}");
}

/// One of these.
fn any<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len())]
}

/// A shell script that makes a few files of all kinds, whose names meet again in the operands.
fn random_setup(random: &mut Random) -> String {
    const STEPS: [&str; 24] = [
        "touch a",
        "touch b",
        "echo text > full",
        "touch 'a b' 'it'\\''s'",
        "touch -- -f -r",
        "mkdir d",
        "mkdir -p d/e/f",
        "mkdir -p d/empty",
        "mkdir empty",
        "touch d/x d/y",
        "touch d/e/f/z",
        "echo text > d/e/full",
        "ln -s a link",
        "ln -s d dirlink",
        "ln -s nowhere dangling",
        "ln -s .. d/up",
        "ln -s . d/self",
        "mkfifo pipe",
        "mkfifo d/pipe",
        "ln a d/hard",
        "chmod 444 a",
        "chmod 555 d",
        "mkdir -p ' / ' && touch ' / /x'",
        "mkdir -p d/d/d/d && touch d/d/d/d/d",
    ];
    let steps: Vec<&str> = (0..2 + random.below(9)).map(|_| any(random, &STEPS)).collect();
    // What needs something that is not there yet is not made.
    steps.join(" 2>/dev/null; ") + " 2>/dev/null; true"
}

fn random_arguments(random: &mut Random) -> String {
    const OPTIONS: [&str; 32] = [
        "-f",
        "-i",
        "-I",
        "-r",
        "-R",
        "-d",
        "-v",
        "-rf",
        "-rf",
        "-rv",
        "-ri",
        "-fr",
        "-rI",
        "-fi",
        "-if",
        "-dv",
        "-vrf",
        "--recursive",
        "--force",
        "--verbose",
        "--dir",
        "--interactive",
        "--interactive=never",
        "--interactive=once",
        "--interactive=always",
        "--one-file-system",
        "--preserve-root",
        "--no-preserve-root",
        "--rec",
        "--inter=no",
        "--",
        "-x",
    ];
    const PATHS: [&str; 30] = [
        "a",
        "b",
        "full",
        "'a b'",
        "-f",
        "./-f",
        "d",
        "d",
        "d/e",
        "d/e/f",
        "d/x",
        "d/e/f/z",
        "empty",
        "d/empty",
        "link",
        "dirlink",
        "dirlink/x",
        "dirlink/e",
        "dangling",
        "pipe",
        "nope",
        "nope/a",
        "a/b",
        "d/up",
        "d/self/x",
        ".",
        "..",
        "''",
        "*",
        "' / '",
    ];
    // Not after a link to a directory: docs/rm.md says how ours differs there.
    const DECORATED: [&str; 12] =
        ["d/", "d//", "./d", ".//d/e", "d/.", "d/..", "d/e/..", "d/../a", "a/", "empty/", "nope/", "d/e/../x"];
    let mut words = Vec::new();
    for _ in 0..random.below(4) {
        words.push(any(random, &OPTIONS));
    }
    for _ in 0..random.below(5) {
        let from: &[&str] = if random.below(4) == 0 { &DECORATED } else { &PATHS };
        words.push(any(random, from));
    }
    if random.below(6) == 0 {
        words.push(any(random, &OPTIONS));
    }
    words.join(" ")
}

/// 2,000 cases: `INODYNE_TEST_CASES=2000 cargo test --test rm_like_gnu`, or `make fuzz`.
#[test]
fn random_invocations_are_answered_alike() {
    let cases = std::env::var("INODYNE_TEST_CASES").map_or(120, |cases| cases.parse().expect("a number"));
    let mut random = Random::seeded(seed());
    for _ in 0..cases {
        let (setup, arguments) = (random_setup(&mut random), random_arguments(&mut random));
        let answers = (0..random.below(14)).map(|_| any(&mut random, &["y\n", "y\n", "Y\n", "n\n", "\n", "no\n"]));
        let stdin: String = answers.collect();
        let locale = any(&mut random, &["C", "C.UTF-8"]);
        all_same([Case { setup: &setup, arguments: &arguments, stdin: &stdin, locale }]);
    }
}
