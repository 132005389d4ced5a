//! What must not get worse (`--fail-if`), for `diff` and `run --baseline`.

use clap::Args;
use inodyne_model::difference::{Difference, GateOutcome};
use inodyne_model::gate::{Counted, Gate, GateError};
use inodyne_model::recording::Recording;
use inodyne_model::syscall::OF_32_BITS;
use inodyne_render::{escaped, gate_in_words};
use inodyne_trace::names_of_calls;

use crate::failure::{ExitStatus, Failure};

/// What must not become true.
#[derive(Debug, Args)]
pub struct GateOptions {
    /// Exit with 1 if this is true: 'calls(openat) > +5%', 'errors > 0', 'finding(sync-bound)'; may be given several times
    #[arg(long = "fail-if", value_name = "EXPRESSION", help_heading = "Gates")]
    pub fail_if: Vec<String>,
}

/// What the help says about expressions.
pub const EXPRESSIONS: &str = "EXPRESSION is what must not become true:\n  \
    calls, errors, bytes > LIMIT   counts of traced runs; of one call calls(openat), bytes(read)\n  \
    paths > LIMIT                  different paths that were looked up, where both have --paths\n  \
    wall > +10%                    where the interval of untraced runs decides it\n  \
    finding(NAME)                  where there was none of this name before\n\
    LIMIT is a change, +5% or +20, or without a sign the most that is allowed.";

impl GateOptions {
    /// The gates. A call may be named that occurs in one of the recordings, whatever this machine's calls are.
    ///
    /// # Errors
    /// One of the texts is not a gate; the failure says where.
    pub fn parsed(&self, recordings: &[&Recording]) -> Result<Vec<Gate>, Failure> {
        let parse = |text: &String| {
            let gate = text.parse().and_then(|gate| known(gate, text, recordings));
            gate.map_err(|error| Failure::new(ExitStatus::Usage, format_args!("--fail-if '{text}': {error}")))
        };
        self.fail_if.iter().map(parse).collect()
    }
}

/// A gate on a finding or a call that can exist: one with an unknown name would hold for ever.
fn known(gate: Gate, text: &str, recordings: &[&Recording]) -> Result<Gate, GateError> {
    let wrong = |name: &str, problem: String| {
        let column = text.find(name).map_or(1, |at| text[..at].chars().count() + 1);
        Err(GateError { column, problem })
    };
    match &gate {
        Gate::Finding(id) if !inodyne_analyse::finding_ids().any(|known| known == id) => {
            let names = inodyne_analyse::finding_ids().collect::<Vec<_>>().join(", ");
            wrong(id, format!("no finding is called {id}: use {names}"))
        }
        Gate::Count {
            of: Counted::Calls(Some(call)) | Counted::Errors(Some(call)) | Counted::Bytes(Some(call)),
            ..
        } if !is_call(call) && !occurs(call, recordings) => {
            let alike = |known: &String| (strsim::jaro_winkler(known, call) * 1000.0) as u32;
            let nearest = names_of_calls().max_by_key(alike).unwrap_or_default();
            wrong(call, format!("no system call is called {call}: {nearest} may be meant"))
        }
        _ => Ok(gate),
    }
}

/// Calls of 32-bit programs may come from another processor's recording.
fn is_call(name: &str) -> bool {
    OF_32_BITS.iter().any(|processor| name.starts_with(processor)) || names_of_calls().any(|known| known == name)
}

/// A log of a 32-bit program names its calls without the processor (`stat64`).
fn occurs(name: &str, recordings: &[&Recording]) -> bool {
    let traces = recordings.iter().flat_map(|recording| &recording.traces);
    traces.flat_map(|trace| &trace.by_comm).flat_map(|comm| &comm.syscalls).any(|call| call.name == name)
}

/// Reports on standard error which gates do not hold, or are not decided, and returns what that comes to.
pub fn told(found: &Difference) -> Result<(), ExitStatus> {
    for result in found.gates.iter().filter(|result| result.outcome != GateOutcome::Held) {
        crate::say::say!("inodyne: {}", escaped(&gate_in_words(result)));
    }
    if found.fails() { Err(ExitStatus::Failed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;
    use inodyne_model::syscall::SyscallStats;

    use super::*;

    #[test]
    fn a_call_that_occurs_in_a_recording_is_known() {
        let gates = GateOptions { fail_if: vec!["calls(stat64) > +5%".to_owned()] };
        let mut recording = sample::find_recording();
        assert!(gates.parsed(&[&recording]).is_err());
        recording.traces[0].by_comm[0].syscalls.push(SyscallStats::new("stat64".to_owned()));
        assert!(gates.parsed(&[&sample::empty(), &recording]).is_ok());
    }
}
