//! One line of a log of `strace -f -ttt -T`. Pure text: who, when, and what the line says happened.
//!
//! ```text
//! 19935 1795323358.365086 execve("/usr/bin/ls", ["ls", "/"], 0x561e… /* 35 vars */ <unfinished ...>
//! 19935 1795323358.365329 <... execve resumed>) = 0 <0.000227>
//! [pid 19936] 1795323358.389940 newfstatat(AT_FDCWD, "/usr/bin/wc", 0x7ffc…, 0) = -1 ENOENT (No such file or directory) <0.000026>
//! 19935<ls> 12:34:56.789012 close(3</etc/passwd>) = 0 <0.000004>
//! 19935 1795323358.381219 +++ exited with 0 +++
//! ```
//!
//! The thread id may be missing (if there is only one thread), may carry its command name (`--decode-pids=comm`), and may be inside
//! `[pid …]` (a log on a terminal, where it is missing as long as there is only one thread). Arguments are kept as text: they are not
//! decoded beyond what [`super::arguments`] needs.

use inodyne_model::run::Exit;

/// Nanoseconds of whatever clock the log was made with.
pub(crate) type Instant = u64;

const NANOS_A_SECOND: u64 = 1_000_000_000;
const SECONDS_A_DAY: u64 = 86_400;

/// The headings of the table of `-C`.
const TABLE: &str = "% time";

/// A line that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The thread; `None` if the log has no column for it.
    pub(crate) tid: Option<u32>,
    /// Its command name, if the log has it.
    pub(crate) comm: Option<&'a str>,
    /// When; `None` if the log has no times.
    pub(crate) at: Option<Stamp>,
    pub(crate) event: Event<'a>,
}

/// The time at the start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Since some epoch (`-ttt`: 1970).
    Absolute(Instant),
    /// Since the previous line (`-r`).
    Relative(Instant),
    /// Time of day (`-tt`, `-t`): starts again at midnight.
    OfDay(Instant),
}

/// A time before this, three years after 1970, is not absolute: the log was made with `-r`.
const EARLIEST: Instant = 100_000_000 * NANOS_A_SECOND;

impl Stamp {
    /// The instant, given that of the previous line: a relative time counts from there, and the time of day continues past
    /// midnight.
    pub(crate) fn after(self, before: Option<Instant>) -> Instant {
        const DAY: u64 = SECONDS_A_DAY * NANOS_A_SECOND;
        match (self, before) {
            (Stamp::Absolute(at), _) | (Stamp::OfDay(at), None) => at,
            (Stamp::Relative(since), before) => before.unwrap_or(EARLIEST).saturating_add(since),
            (Stamp::OfDay(at), Some(before)) => {
                let same_day = before / DAY * DAY + at;
                // Lines of several threads may be some milliseconds out of order; only a step back of more than half a day is a new day.
                if same_day + DAY / 2 < before { same_day + DAY } else { same_day }
            }
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// A whole call.
    Call { name: &'a str, arguments: &'a str, outcome: Outcome<'a> },
    /// The first half of a call that another thread's line cut in two.
    Unfinished { name: &'a str, arguments: &'a str },
    /// The second half of it.
    Resumed { name: &'a str, arguments: &'a str, outcome: Outcome<'a> },
    /// The thread ended, and if it was the last of its process, so did the process.
    Ended(Exit),
    /// The thread's id lives on as that of its process, because another thread has executed a program.
    Superseded { by: u32 },
    /// strace follows this thread from now on.
    Attached { tid: u32 },
    /// A signal, a stack, or a note from strace.
    Other,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome<'a> {
    /// What it returned.
    pub(crate) returned: Returned<'a>,
    /// From its entry to its return, in nanoseconds (`-T`); `None` if the log does not say.
    pub(crate) took: Option<u64>,
}

/// What a call returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returned<'a> {
    /// A value; zero if it does not fit.
    Value(i64),
    /// An error, by its name.
    Error(&'a str),
    /// It never returned, or the log does not say.
    Never,
}

/// What a line says; `None` if it is not a line of such a log at all.
pub(crate) fn parse(line: &str) -> Option<Line<'_>> {
    let text = line.trim_end();
    let whole = |text| {
        let (tid, comm, at, rest) = columns(text);
        Some(Line { tid, comm, at, event: event(rest)? })
    };
    // On a terminal the line may begin after what a command has printed there without a newline at the end.
    let behind = || whole(&text[text.rfind("[pid ")?..]).filter(|line| line.at.is_some());
    whole(text).or_else(behind)
}

/// A call whose line is broken off by something else, on a terminal: which thread strace follows from now on, or what the call
/// itself prints there. The rest of it is on another line, without the columns.
///
/// ```text
/// 09:35:06.840743 vfork(strace: Process 3894 attached
///  <unfinished ...>
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Torn<'a> {
    /// The line up to where it breaks off.
    pub(crate) head: &'a str,
    /// The thread that strace names there.
    pub(crate) attached: Option<u32>,
}

/// The torn call that this line begins; `None` if it begins none. Only called for lines that [`parse`] cannot read.
pub(crate) fn torn(line: &str) -> Option<Torn<'_>> {
    let (_, _, at, rest) = columns(line);
    at?;
    let (name, _) = rest.split_once('(')?;
    if !is_name(name) {
        return None;
    }
    let note = line.rfind("Process ").and_then(|at| Some((at, attached(&line[at..])?)));
    Some(match note {
        Some((at, tid)) => {
            let head = &line[..at];
            Torn { head: head.strip_suffix("strace: ").unwrap_or(head), attached: Some(tid) }
        }
        None => Torn { head: line, attached: None },
    })
}

/// Whether the table of `-C` begins here.
pub(crate) fn begins_table(line: &str) -> bool {
    line.starts_with(TABLE)
}

/// The columns in front of the event, and the text of the event.
fn columns(text: &str) -> (Option<u32>, Option<&str>, Option<Stamp>, &str) {
    let (tid, comm, rest) = thread(unquoted(text));
    let (at, rest) = stamp(rest.trim_start());
    (tid, comm, at, without_notes(rest))
}

/// An e-mail that quotes a log has `> ` before its lines, and so does a stack (`-k`); in an e-mail, a time follows.
fn unquoted(text: &str) -> &str {
    let quoted = text.trim_start_matches(['>', ' ']);
    let has_time = || stamp(thread(quoted).2.trim_start()).0.is_some();
    if text.starts_with('>') && has_time() { quoted } else { text }
}

/// Skips what may follow the time: the time since the previous line (`-r` with `-t`), the number of the call (`-n`), where in the
/// program it was made (`-i`).
///
/// ```text
/// 09:36:53.715785 (+     0.000724) [  12] [00007f5302bb6c47] brk(NULL) = 0x5576279c6000 <0.000014>
/// ```
fn without_notes(text: &str) -> &str {
    let since = text.strip_prefix("(+").and_then(|rest| rest.split_once(") "));
    let mut text = since.map_or(text, |(_, rest)| rest);
    while let Some((inside, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] "))
        && inside.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b' ' || byte == b'?')
    {
        text = rest;
    }
    text
}

/// `Process 3894 attached`, as strace prints it for each thread that it follows.
fn attached(text: &str) -> Option<u32> {
    let text = text.strip_prefix("strace: ").unwrap_or(text);
    text.strip_prefix("Process ")?.split_once(" attached")?.0.parse().ok()
}

/// The column of the thread.
fn thread(text: &str) -> (Option<u32>, Option<&str>, &str) {
    let none = (None, None, text);
    let (number, rest) = match text.strip_prefix("[pid ") {
        Some(inner) => match inner.split_once(']') {
            Some((inside, rest)) => (inside.trim_start(), rest),
            None => return none,
        },
        None => {
            let text = text.trim_start();
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = text.split_at(digits);
            if rest.starts_with('<') {
                // The name may contain blanks and brackets; a blank after a bracket ends it.
                match rest.find("> ") {
                    Some(end) => (&text[..digits + end + 1], &rest[end + 1..]),
                    None => return none,
                }
            } else if rest.starts_with(' ') {
                (number, rest)
            } else {
                return none;
            }
        }
    };
    let (number, comm) = match number.split_once('<') {
        Some((number, comm)) => (number, comm.strip_suffix('>')),
        None => (number, None),
    };
    match number.parse() {
        Ok(tid) => (Some(tid), comm, rest.trim_start()),
        Err(_) => none,
    }
}

fn stamp(text: &str) -> (Option<Stamp>, &str) {
    let Some((word, rest)) = text.split_once(' ') else { return (None, text) };
    let found = match word.split(':').collect::<Vec<_>>()[..] {
        [seconds] => instant(seconds).map(|at| if at < EARLIEST { Stamp::Relative(at) } else { Stamp::Absolute(at) }),
        [hours, minutes, seconds] => of_day(hours, minutes, seconds).map(Stamp::OfDay),
        _ => None,
    };
    match found {
        Some(stamp) => (Some(stamp), rest.trim_start()),
        None => (None, text),
    }
}

fn of_day(hours: &str, minutes: &str, seconds: &str) -> Option<Instant> {
    let whole = |text: &str, below: u64| text.parse::<u64>().ok().filter(|value| *value < below);
    let before = (whole(hours, 24)? * 60 + whole(minutes, 60)?) * 60 * NANOS_A_SECOND;
    // A leap second is the 61st.
    let seconds = if seconds.contains('.') { instant(seconds)? } else { whole(seconds, 61)? * NANOS_A_SECOND };
    (seconds < 61 * NANOS_A_SECOND).then_some(before + seconds)
}

/// `1795323358.365086` in nanoseconds. There must be a fraction: a number without one is something else.
fn instant(text: &str) -> Option<Instant> {
    let (seconds, fraction) = text.split_once('.')?;
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(seconds) || !all_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let nanos = fraction.parse::<u64>().ok()? * scale;
    seconds.parse::<u64>().ok()?.checked_mul(NANOS_A_SECOND)?.checked_add(nanos)
}

fn event(text: &str) -> Option<Event<'_>> {
    if let Some(note) = text.strip_prefix("+++ ") {
        return Some(match note.strip_prefix("superseded by execve in pid ") {
            Some(by) => by.trim_end_matches(" +++").parse().map_or(Event::Other, |by| Event::Superseded { by }),
            None => Event::Ended(exit(note)),
        });
    }
    if let Some(resumed) = text.strip_prefix("<... ") {
        let (name, rest) = resumed.split_once(" resumed>")?;
        let name = is_name(name).then_some(name)?;
        let (arguments, outcome) = ended(rest)?;
        return Some(Event::Resumed { name, arguments, outcome });
    }
    if let Some(tid) = attached(text) {
        return Some(Event::Attached { tid });
    }
    let note = ["--- ", "strace: ", "Process ", "[ Process ", " > ", "> ", TABLE, "------ "];
    if note.iter().any(|start| text.starts_with(start)) {
        return Some(Event::Other);
    }
    let (name, rest) = text.split_once('(')?;
    let name = is_name(name).then_some(name)?;
    // strace may detach before the call returns, and a thread that executes a program takes the id of its process.
    let changed = || rest.strip_suffix(" ...>")?.rsplit_once("<pid changed to ").map(|(arguments, _)| arguments);
    let unfinished = rest.strip_suffix("<unfinished ...>").or_else(|| rest.strip_suffix("<detached ...>"));
    let unfinished = unfinished.or_else(changed);
    if let Some(arguments) = unfinished {
        // If the process was killed in the meantime, newer versions of strace append that.
        return Some(Event::Unfinished { name, arguments: arguments.trim_end() });
    }
    if let Some((arguments, returned)) = rest.rsplit_once("<unfinished ...>)")
        && returned.trim_start().starts_with("= ?")
    {
        let outcome = Outcome { returned: Returned::Never, took: None };
        return Some(Event::Call { name, arguments: arguments.trim_end(), outcome });
    }
    let (arguments, outcome) = ended(rest)?;
    Some(Event::Call { name, arguments, outcome })
}

/// `exited with 3 +++`, `killed by SIGKILL (core dumped) +++`.
fn exit(note: &str) -> Exit {
    let word = |start: &str| note.strip_prefix(start).and_then(|rest| rest.split(' ').next());
    match (word("exited with "), word("killed by ")) {
        (Some(code), _) => Exit::Code(code.parse().unwrap_or(0)),
        (None, Some(signal)) => Exit::of_signal(signal),
        (None, None) => Exit::Code(0),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The arguments up to the closing parenthesis, and the outcome after it. The text of a string may look like an outcome, so the last
/// one counts.
fn ended(text: &str) -> Option<(&str, Outcome<'_>)> {
    // The column of outcomes is padded: `close(3)      = 0`.
    let equals = text.rmatch_indices("= ").find(|(at, _)| {
        let before = text[..*at].trim_end();
        before.ends_with(')') && before.len() < *at
    });
    let (at, _) = equals?;
    let arguments = text[..at].trim_end().strip_suffix(')')?;
    Some((arguments, outcome(&text[at + 2..])))
}

fn outcome(text: &str) -> Outcome<'_> {
    let (text, took) = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((before, took)) => match instant(took) {
            Some(took) => (before.trim_end(), Some(took)),
            None => (text, None),
        },
        None => (text, None),
    };
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let error = || rest.split(' ').next().filter(|word| word.starts_with('E') && is_name(word));
    let returned = match first {
        "?" | "-1" => match error() {
            Some(name) => Returned::Error(name),
            None if first == "?" => Returned::Never,
            None => Returned::Value(-1),
        },
        // A process in another pid namespace: `2 /* 4711 in strace's PID NS */`.
        _ if rest.ends_with("in strace's PID NS */") => {
            let outside = rest.split(' ').nth(1).unwrap_or_default();
            Returned::Value(number(outside))
        }
        // `3</etc/passwd>`, `0x7f…` and so on.
        _ => Returned::Value(number(first.split_once('<').map_or(first, |(number, _)| number))),
    };
    Outcome { returned, took }
}

fn number(text: &str) -> i64 {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().and_then(|value| i64::try_from(value).ok()),
        None => text.parse().ok(),
    };
    parsed.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> (&str, &str, Outcome<'_>) {
        match parse(line).map(|line| line.event) {
            Some(Event::Call { name, arguments, outcome }) => (name, arguments, outcome),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_call_with_thread_and_time() {
        let line = parse(
            "19934 1795323358.358312 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, -1, 0) = 0x7fecd9980000 <0.000011>",
        )
        .unwrap();
        assert_eq!((line.tid, line.at), (Some(19934), Some(Stamp::Absolute(1_795_323_358_358_312_000))));
        let Event::Call { name, arguments, outcome } = line.event else { panic!() };
        assert_eq!((name, arguments), ("mmap", "NULL, 8192, PROT_READ, MAP_PRIVATE, -1, 0"));
        assert_eq!(outcome, Outcome { returned: Returned::Value(0x7fec_d998_0000), took: Some(11_000) });
    }

    #[test]
    fn the_forms_of_the_thread_column() {
        let of = |line| parse(line).map(|line| (line.tid, line.comm));
        assert_eq!(of("close(3) = 0"), Some((None, None)));
        assert_eq!(of("[pid  77] close(3) = 0"), Some((Some(77), None)));
        assert_eq!(of("[pid 77<a b>] 1.000001 close(3) = 0"), Some((Some(77), Some("a b"))));
        assert_eq!(of("77<tokio <1>> 1.000001 close(3) = 0"), Some((Some(77), Some("tokio <1>"))));
        assert_eq!(of("1795323358.358312 close(3) = 0 <0.000011>"), Some((None, None)));
        assert_eq!(of("nothing of the kind"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn outcomes() {
        let returned = |line| call(line).2.returned;
        assert_eq!(
            returned("openat(1, \"x\", 0) = -1 ENOENT (No such file or directory) <0.1>"),
            Returned::Error("ENOENT")
        );
        assert_eq!(returned("openat(1, \"x\", 0)     = 3</x>"), Returned::Value(3));
        assert_eq!(
            returned("read(0, 0x1, 2) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)"),
            Returned::Error("ERESTARTSYS")
        );
        assert_eq!(returned("exit_group(0) = ?"), Returned::Never);
        assert_eq!(returned("futex(0x1, FUTEX_WAIT, <unfinished ...>) = ?"), Returned::Never);
        assert_eq!(returned("poll([{fd=3}], 1, 5) = 0 (Timeout) <5.005>"), Returned::Value(0));
        assert_eq!(returned("getcwd(\"a) = 1 <0.5>\", 4) = 9 <0.25>"), Returned::Value(9));
        assert_eq!(call("getcwd(\"a) = 1 <0.5>\", 4) = 9 <0.25>").2.took, Some(250_000_000));
        assert_eq!(call("write(1, \"x = \", 4) = 4").1, "1, \"x = \", 4");
    }

    #[test]
    fn halves_ends_and_notes() {
        let event = |line| parse(line).unwrap().event;
        assert_eq!(event("5 1.0 wait4(-1,  <unfinished ...>"), Event::Unfinished { name: "wait4", arguments: "-1," });
        let Event::Resumed { name, outcome, .. } = event("5 1.0 <... wait4 resumed>[], 0, NULL) = 7 <0.5>") else {
            panic!()
        };
        assert_eq!((name, outcome.returned), ("wait4", Returned::Value(7)));
        assert_eq!(event("5 1.0 +++ exited with 0 +++"), Event::Ended(Exit::Code(0)));
        assert_eq!(event("5 1.0 +++ killed by SIGKILL +++"), Event::Ended(Exit::Signal(9)));
        assert_eq!(event("5 1.0 +++ superseded by execve in pid 6 +++"), Event::Superseded { by: 6 });
        assert_eq!(event("5 1.0 --- SIGCHLD {si_signo=SIGCHLD} ---"), Event::Other);
        assert_eq!(event(" > /lib/libc.so.6(__read+0x4e) [0x1]"), Event::Other);
    }

    #[test]
    fn what_stands_behind_the_time_and_before_a_quoted_line() {
        let close = |line: &str| match parse(line) {
            Some(Line { at: Some(_), event: Event::Call { name, .. }, .. }) => assert_eq!(name, "close", "{line}"),
            other => panic!("{line}: {other:?}"),
        };
        close("12:34:56.000001 (+     0.000724) close(3) = 0 <0.000014>");
        close("7 1795323358.358312 [   3] [00007f5302bb6c47] close(3) = 0 <0.000009>");
        close("7 1795323358.358312 [????????????????] close(3) = 0 <0.000009>");
        close("> 0.000036 close(4)                  = 0 <0.000008>");
        close(">> > [pid 7] 12:34:56 close(4) = 0 <0.000008>");
        close("cat: tree/missing-1[pid 22494] 1795599741.172555 close(3) = 0 <0.000087>");
        // A stack and a program's output are not calls.
        assert_eq!(parse(" > /lib/libc.so.6(__read+0x4e) [0x1]").unwrap().event, Event::Other);
        assert_eq!(parse("[done] close the door (please)"), None);
    }

    #[test]
    fn torn_lines() {
        let of = |line| torn(line).map(|torn| (torn.head, torn.attached));
        assert_eq!(of("12:34:56.1 vfork(strace: Process 77 attached"), Some(("12:34:56.1 vfork(", Some(77))));
        let old = "[pid 5] 12:34:56.1 clone(Process 77 attached (waiting for parent)";
        assert_eq!(of(old), Some(("[pid 5] 12:34:56.1 clone(", Some(77))));
        let printed = "12:34:56.1 write(1, \"hello\\n\", 6hello";
        assert_eq!(of(printed), Some((printed, None)));
        assert_eq!(of("hello (I am no call)"), None);
        assert_eq!(parse("strace: Process 77 attached").unwrap().event, Event::Attached { tid: 77 });
        let Event::Unfinished { name, .. } = parse("5 1.0 read(0,  <detached ...>").unwrap().event else { panic!() };
        assert_eq!(name, "read");
    }

    #[test]
    fn relative_times_add_up() {
        let at = |line| parse(line).unwrap().at.unwrap();
        let first = at("0.000000 close(3) = 0").after(None);
        let second = at("     0.000074 close(3) = 0").after(Some(first));
        assert_eq!(second - first, 74_000);
    }

    #[test]
    fn the_time_of_day_goes_on_at_midnight() {
        let at = |line| parse(line).unwrap().at.unwrap();
        let before = at("23:59:59.900000 close(3) = 0").after(None);
        let after = at("00:00:00.100000 close(3) = 0").after(Some(before));
        assert_eq!(after - before, 200_000_000);
        // Not every step backwards is a new day.
        assert_eq!(before - at("23:59:59.899000 close(3) = 0").after(Some(before)), 1_000_000);
        assert_eq!(parse("12:34:56 close(3) = 0").unwrap().at, Some(Stamp::OfDay(45_296_000_000_000)));
    }
}
