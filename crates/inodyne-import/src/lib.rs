//! IMPORT: turns logs from another tracer into recordings.
//!
//! Anyone can make a log with `strace -f -ttt -T`, without root and without BPF, on any machine, and many bug reports contain
//! one. [`strace`] makes a recording of it with exact counts, errors and wall times of calls, paths, programs and processes. The
//! time inside a call stays undivided, and nothing is made up: which rows and findings a log can support is decided where they are
//! made, by [`inodyne_model::trace::Tracer`].
//!
//! Pure: text in, recording out. The main path, top to bottom:
//!
//! | module | what it knows |
//! |---|---|
//! | `line` | one line: who, when, what |
//! | `arguments` | the strings among the arguments of a call |
//! | `history` | from lines to the lives of threads, their halves of calls put together |
//! | `convert` | from lives to the tables of a trace |

mod arguments;
mod convert;
mod history;
mod line;

use inodyne_model::command::CommandSpec;
use inodyne_model::host::Host;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::Run;

use history::History;

/// What a log gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// One command, in a place that nothing is known about, with one trace.
    pub recording: Recording,
    /// Lines that are not strace's: what the command printed, if both went to a terminal.
    pub unread_lines: u64,
    /// Calls whose duration the log does not give. They are counted as taking no time.
    pub untimed_calls: u64,
}

/// Why a log cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// There is no call in it.
    #[error("there is no call in it: make it with strace -f -ttt -T -o FILE COMMAND")]
    NoCalls,
    /// Its lines have no times.
    #[error("its lines have no times: make it with strace -f -ttt -T -o FILE COMMAND")]
    NoTimes,
    /// Its calls have no durations.
    #[error("its calls have no durations (-T): make it with strace -f -ttt -T -o FILE COMMAND")]
    NoDurations,
}

/// Makes a recording of a log of `strace -f -ttt -T`; `-tt`, `-y`, `-yy`, `-C`, `-k` and `--decode-pids=comm` do no harm.
///
/// `program_version` and `created_unix_s` are what the recording will say about how and when it was made.
///
/// # Errors
/// It is not such a log, or lacks what a recording needs.
pub fn strace(log: &str, program_version: &str, created_unix_s: u64) -> Result<Imported, ImportError> {
    let history = History::of(log.lines());
    let calls: usize = history.threads.iter().map(|thread| thread.calls.len()).sum();
    if calls == 0 {
        return Err(if history.undated > 0 { ImportError::NoTimes } else { ImportError::NoCalls });
    }
    if history.untimed * 2 > calls as u64 {
        return Err(ImportError::NoDurations);
    }
    let trace = convert::trace(&history);
    let mut recording = Recording::new(program_version, created_unix_s, Host::default());
    recording.commands.push(command(&history));
    recording.places.push(Place { label: "the log".to_owned(), ..Place::default() });
    recording.push_run(Run {
        traced: true,
        wall_ns: trace.wall_ns,
        exit: history.exit_of(history.leader_of_root()).unwrap_or_default(),
        // A log does not contain the rest.
        ..Run::default()
    });
    recording.traces.push(trace);
    Ok(Imported { recording, unread_lines: history.unread, untimed_calls: history.untimed })
}

/// The first program of the root; a process that strace attached to has none.
fn command(history: &History) -> CommandSpec {
    let words = history.threads.get(history.root).and_then(|root| root.programs.first());
    let words = words.map(|program| program.words.clone()).filter(|words| words.iter().any(|word| !word.is_empty()));
    CommandSpec::new(words.unwrap_or_else(|| vec!["unknown".to_owned()]).into_iter().map(Into::into).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_words_is_unknown() {
        for words in ["[]", r#"[""]"#, "NULL"] {
            let log = format!(r#"7 1.0 execve("/bin/x", {words}, 0x1) = 0 <0.1>"#);
            let imported = strace(&log, "0", 0).unwrap();
            assert_eq!(imported.recording.commands[0], CommandSpec::new(vec!["unknown".into()]), "{words}");
        }
    }
}
