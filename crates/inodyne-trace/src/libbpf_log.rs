//! What libbpf says while it loads and attaches: kept for the error instead of printed, since only the command line prints. If the
//! kernel refused a program, this holds the verifier's log, from which the error takes the one line that says why.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// The warnings since the last [`listen`].
static HEARD: Mutex<String> = Mutex::new(String::new());

/// Once this much has been heard, nothing more is kept: what went wrong first comes first.
const MOST_BYTES: usize = 64 << 10;

/// The longest reason that fits into a line that somebody reads.
const MOST_CHARACTERS: usize = 200;

/// Keeps warnings from here on.
pub(crate) fn listen() {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).clear();
    set_print(Some((PrintLevel::Warn, keep)));
}

fn keep(_: PrintLevel, message: String) {
    let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    if heard.len() < MOST_BYTES {
        heard.push_str(&message);
    }
}

/// Why the kernel refused it, in one line.
pub(crate) fn explained(error: &libbpf_rs::Error) -> String {
    let heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    reason(&heard).unwrap_or_else(|| format!("{error:#}"))
}

/// The program and why the verifier refused it, from what the verifier said; else the first warning, which names the program or map.
fn reason(heard: &str) -> Option<String> {
    let whole = match verifier_log(heard) {
        Some((program, log)) => match last_words(log) {
            Some(why) => format!("{}: {why}", subprogram(log).unwrap_or(program)),
            None => first_warning(heard)?,
        },
        None => first_warning(heard)?,
    };
    Some(match whole.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    })
}

fn first_warning(heard: &str) -> Option<String> {
    let first = heard.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(first.strip_prefix("libbpf: ").unwrap_or(first).to_owned())
}

/// The first program that has a log, and the log.
fn verifier_log(heard: &str) -> Option<(&str, &str)> {
    let (before, log) = heard.split_once("-- BEGIN PROG LOAD LOG --")?;
    let program = before.rsplit_once("prog '")?.1.split_once('\'')?.0;
    Some((program, log.split_once("-- END PROG LOAD LOG --").map_or(log, |(log, _)| log)))
}

/// What the verifier said last, apart from its statistics.
fn last_words(log: &str) -> Option<&str> {
    let statistics = ["processed ", "verification time", "stack depth"];
    let is_said = |line: &&str| !line.is_empty() && !statistics.iter().any(|word| line.starts_with(word));
    log.lines().map(str::trim).rfind(is_said)
}

/// The global function that was being verified: the verifier looks at each of them separately (`Validating NAME() func#1...`).
fn subprogram(log: &str) -> Option<&str> {
    let of = |line| str::strip_prefix(line, "Validating ").and_then(|rest: &str| Some(rest.split_once("() func#")?.0));
    let is_safe = |line: &str| line.starts_with("Func#") && line.contains(" is safe for any args");
    log.lines().fold(None, |current, line| if is_safe(line) { None } else { of(line).or(current) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &str = "libbpf: prog 'calls_exit': BPF program load failed: -EACCES\n\
        libbpf: prog 'calls_exit': -- BEGIN PROG LOAD LOG --\n\
        Validating samples_blocked() func#1...\n\
        Func#1 is safe for any args that match its prototype\n\
        Validating dtype_read_exit() func#2...\n\
        12: (79) r0 = *(u64 *)(r0 +0)\n\
        R0 invalid mem access 'scalar'\n\
        processed 12 insns (limit 1000000) max_states_per_insn 0\n\
        -- END PROG LOAD LOG --\n\
        libbpf: prog 'calls_exit': failed to load: -EACCES\n";

    #[test]
    fn the_verifiers_reason_is_told_with_the_function_that_it_looked_at() {
        assert_eq!(reason(REFUSED).unwrap(), "dtype_read_exit: R0 invalid mem access 'scalar'");
        let of_program = REFUSED.replace("Validating dtype_read_exit() func#2...", "0: R1=ctx()");
        assert_eq!(reason(&of_program).unwrap(), "calls_exit: R0 invalid mem access 'scalar'");
    }

    #[test]
    fn without_a_log_it_is_the_first_warning() {
        let heard = "libbpf: failed to find '__bpf_trace_x' BTF\nlibbpf: prog 'x': failed to load: -ESRCH\n";
        assert_eq!(reason(heard).unwrap(), "failed to find '__bpf_trace_x' BTF");
        assert_eq!(reason(""), None);
    }

    #[test]
    fn a_reason_fits_into_a_line() {
        let long = format!("libbpf: {}", "ä".repeat(1000));
        assert_eq!(reason(&long).unwrap().chars().count(), MOST_CHARACTERS + 1);
    }
}
