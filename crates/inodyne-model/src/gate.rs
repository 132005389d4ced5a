//! What must not get worse from one recording to the next, as one line: `calls(openat) > +5%` is what must not become true.
//!
//! ```text
//! calls > +5%               calls(openat) > +20       errors(newfstatat) > 0     bytes(read) > +10%
//! paths > +50               wall > +10%               finding(sync-bound)
//! ```
//!
//! A number with a sign is a change from the old recording to the new one, a number without is the new recording's own value.
//! Whether a gate holds is for `inodyne-analyse` to say.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::syscall::returns_bytes;

/// What must not become true.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// A count lies above a limit.
    Count {
        /// What is counted.
        of: Counted,
        /// What it may be at most.
        most: Limit,
    },
    /// The wall-clock time has grown by more than this many per cent.
    Wall(f64),
    /// There is a finding of this name that was not there before.
    Finding(String),
}

/// What is counted in a traced run. Without the name of a call, it is the sum over all calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// Calls that returned.
    Calls(Option<String>),
    /// Calls that returned an error.
    Errors(Option<String>),
    /// Bytes that calls moved.
    Bytes(Option<String>),
    /// Different paths that were looked up.
    Paths,
}

/// How much is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// This many per cent more than before: `+5%`.
    Percent(f64),
    /// This many more than before: `+20`.
    More(u64),
    /// This many: `20`.
    Value(u64),
}

impl Limit {
    /// Whether the new count lies above it.
    pub fn is_exceeded(self, old: u64, new: u64) -> bool {
        match self {
            // Computed this way, whole per cent of whole numbers are whole numbers.
            Limit::Percent(percent) => new as f64 * 100.0 > old as f64 * (100.0 + percent),
            Limit::More(count) => new > old.saturating_add(count),
            Limit::Value(count) => new > count,
        }
    }
}

/// Why a text is not a gate, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct GateError {
    /// The character that is wrong, counting from 1.
    pub column: usize,
    /// What is wrong, and what to write.
    pub problem: String,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gate::Count { of, most } => write!(f, "{of} > {most}"),
            Gate::Wall(percent) => write!(f, "wall > {}", Limit::Percent(*percent)),
            Gate::Finding(id) => write!(f, "finding({id})"),
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, call) = match self {
            Counted::Calls(call) => ("calls", call.as_deref()),
            Counted::Errors(call) => ("errors", call.as_deref()),
            Counted::Bytes(call) => ("bytes", call.as_deref()),
            Counted::Paths => ("paths", None),
        };
        f.write_str(word)?;
        call.map_or(Ok(()), |call| write!(f, "({call})"))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Percent(percent) => write!(f, "+{percent}%"),
            Limit::More(count) => write!(f, "+{count}"),
            Limit::Value(count) => write!(f, "{count}"),
        }
    }
}

impl Serialize for Gate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Gate, GateError> {
        let mut parser = Parser { text, at: 0 };
        let gate = parser.gate()?;
        parser.skip_spaces();
        match parser.rest() {
            "" => Ok(gate),
            rest => parser.fail(format!("nothing may follow here, and there is {rest:?}")),
        }
    }
}

const QUANTITIES: &str = "calls, errors, bytes, paths, wall or finding(NAME)";
const COUNT: &str = "+5%, +20 or 20";

/// The text of a gate, and how far it has been read.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn gate(&mut self) -> Result<Gate, GateError> {
        self.skip_spaces();
        let start = self.at;
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        let call = |parser: &mut Parser<'a>| parser.argument("the name of a system call");
        let of = match word {
            "calls" => Counted::Calls(call(self)?),
            "errors" => Counted::Errors(call(self)?),
            "bytes" => {
                let name = self.at + 1;
                let call = call(self)?;
                if let Some(call) = call.as_deref().filter(|call| !returns_bytes(call)) {
                    self.at = name;
                    return self.fail(format!("{call} moves no bytes: name a call like read or write"));
                }
                Counted::Bytes(call)
            }
            "paths" => Counted::Paths,
            "wall" => return self.wall(),
            "finding" => {
                return match self.argument("the name of a finding")? {
                    Some(id) => Ok(Gate::Finding(id)),
                    None => self.fail("write finding(NAME): finding(sync-bound)".to_owned()),
                };
            }
            "" => return self.fail(format!("write {QUANTITIES}")),
            word => {
                self.at = start;
                return self.fail(format!("{word} is nothing that is counted: write {QUANTITIES}"));
            }
        };
        let (_, most) = self.limit(COUNT)?;
        Ok(Gate::Count { of, most })
    }

    fn wall(&mut self) -> Result<Gate, GateError> {
        match self.limit("+10%")? {
            (_, Limit::Percent(percent)) => Ok(Gate::Wall(percent)),
            (start, _) => {
                self.at = start;
                self.fail("a time is compared with a change in per cent: write +10%".to_owned())
            }
        }
    }

    /// What is between brackets, if any follow.
    fn argument(&mut self, what: &str) -> Result<Option<String>, GateError> {
        if !self.takes('(') {
            return Ok(None);
        }
        self.skip_spaces();
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'));
        if name.is_empty() {
            return self.fail(format!("write {what} between the brackets"));
        }
        self.skip_spaces();
        if !self.takes(')') {
            return self.fail("a closing bracket is missing".to_owned());
        }
        Ok(Some(name.to_owned()))
    }

    /// `> +5%`, and where its number begins.
    fn limit(&mut self, forms: &str) -> Result<(usize, Limit), GateError> {
        self.skip_spaces();
        if !self.takes('>') {
            return self.fail(format!("write > and what is allowed: > {forms}"));
        }
        self.skip_spaces();
        let start = self.at;
        let is_change = self.takes('+');
        let number = self.take_while(|c| c.is_ascii_digit() || c == '.');
        let is_part = self.takes('%');
        let wrong = |parser: &mut Parser<'a>, problem: String| {
            parser.at = start;
            parser.fail(problem)
        };
        if number.is_empty() {
            return wrong(self, format!("write a number: {forms}"));
        }
        let limit = match (is_part, is_change) {
            (true, false) => return wrong(self, format!("a percentage is a change: write +{number}%")),
            (true, true) => number.parse().ok().filter(|n: &f64| n.is_finite()).map(Limit::Percent),
            (false, true) => number.parse().ok().map(Limit::More),
            (false, false) => number.parse().ok().map(Limit::Value),
        };
        match limit {
            Some(limit) => Ok((start, limit)),
            None => wrong(self, format!("{number} is not a number that can be counted to: write {forms}")),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, takes: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !takes(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn takes(&mut self, c: char) -> bool {
        let is_there = self.rest().starts_with(c);
        if is_there {
            self.at += c.len_utf8();
        }
        is_there
    }

    /// The mistake is at the current position.
    fn fail<T>(&self, problem: String) -> Result<T, GateError> {
        Err(GateError { column: self.text[..self.at].chars().count() + 1, problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn a_gate_is_read_and_written() {
        let count = |of, most| Gate::Count { of, most };
        for (text, gate) in [
            ("calls > +5%", count(Counted::Calls(None), Limit::Percent(5.0))),
            ("calls(openat) > +20", count(Counted::Calls(call("openat")), Limit::More(20))),
            ("errors(newfstatat) > 0", count(Counted::Errors(call("newfstatat")), Limit::Value(0))),
            ("calls(i386:stat64) > +0.1%", count(Counted::Calls(call("i386:stat64")), Limit::Percent(0.1))),
            ("bytes(read) > +10%", count(Counted::Bytes(call("read")), Limit::Percent(10.0))),
            ("paths > +50", count(Counted::Paths, Limit::More(50))),
            ("wall > +10%", Gate::Wall(10.0)),
            ("finding(sync-bound)", Gate::Finding("sync-bound".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(gate.clone()), "{text}");
            assert_eq!(gate.to_string(), text);
        }
        assert_eq!(
            "  calls( openat )>+5% ".parse::<Gate>().map(|gate| gate.to_string()),
            Ok("calls(openat) > +5%".to_owned())
        );
        assert_eq!("wall > +7%".parse::<Gate>().map(|gate| gate.to_string()), Ok("wall > +7%".to_owned()));
    }

    #[test]
    fn a_mistake_is_told_with_its_column() {
        for (text, column, problem) in [
            ("", 1, "write calls, errors"),
            ("cals > +5%", 1, "cals is nothing that is counted"),
            ("calls", 6, "write > and what is allowed"),
            ("calls < +5%", 7, "write > and what is allowed"),
            ("calls > ", 9, "write a number"),
            ("calls > 5%", 9, "write +5%"),
            ("calls > +5.5", 9, "5.5 is not a number"),
            ("calls > -5", 9, "write a number"),
            ("calls > +5% or so", 13, "nothing may follow"),
            ("calls(open > +5%", 12, "a closing bracket"),
            ("calls() > +5%", 7, "the name of a system call"),
            ("bytes(openat) > +5%", 7, "openat moves no bytes"),
            ("wall > +3", 8, "per cent"),
            ("finding", 8, "finding(NAME)"),
            ("ä > 1", 1, "write calls"),
            ("paths(x) > 1", 6, "write >"),
            ("calls > 99999999999999999999999", 9, "not a number"),
        ] {
            let error = text.parse::<Gate>().unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.problem.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn a_limit_is_exceeded_by_what_lies_above_it() {
        let percent = Limit::Percent;
        assert!(!percent(5.0).is_exceeded(100, 105) && percent(5.0).is_exceeded(100, 106));
        assert!(!percent(15.0).is_exceeded(100, 115) && percent(15.0).is_exceeded(100, 116));
        assert!(!Limit::More(20).is_exceeded(100, 120) && Limit::More(20).is_exceeded(100, 121));
        assert!(!Limit::Value(0).is_exceeded(7, 0) && Limit::Value(0).is_exceeded(7, 1));
        assert!(percent(50.0).is_exceeded(0, 1) && !percent(50.0).is_exceeded(0, 0));
    }
}
