//! What was compared, as one word that filters and scripts can match: `wall`, `syscall:newfstatat:wall`,
//! `ledger:blocked:newfstatat:device-read`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::ledger::{RowKey, RowKind};

/// A quantity of a run. All are times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Metric {
    /// Wall-clock time, to the end of the command.
    Wall,
    /// Wall-clock time until everything that was written is on the device.
    Durable,
    /// CPU time in user mode.
    User,
    /// CPU time in the kernel.
    Sys,
    /// Wall-clock time of all calls of one system call.
    SyscallWall(String),
    /// CPU time of all calls of one system call.
    SyscallCpu(String),
    /// A row of the ledger.
    Ledger(RowKey),
}

/// Text that is not a metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no metric {0:?}")]
pub struct UnknownMetric(String);

const NONE: &str = "-";

/// A word of one of the model's enums, as it is in JSON.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => NONE.to_owned(),
    }
}

fn of_word<T: for<'de> Deserialize<'de>>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Wall => f.write_str("wall"),
            Metric::Durable => f.write_str("durable"),
            Metric::User => f.write_str("user"),
            Metric::Sys => f.write_str("sys"),
            Metric::SyscallWall(name) => write!(f, "syscall:{name}:wall"),
            Metric::SyscallCpu(name) => write!(f, "syscall:{name}:cpu"),
            Metric::Ledger(RowKey { kind, syscall, cause }) => {
                write!(f, "ledger:{}", word(kind))?;
                if syscall.is_some() || cause.is_some() {
                    write!(f, ":{}", syscall.as_deref().unwrap_or(NONE))?;
                }
                cause.map_or(Ok(()), |cause| write!(f, ":{}", word(cause)))
            }
        }
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Metric, UnknownMetric> {
        parsed(text).ok_or_else(|| UnknownMetric(text.to_owned()))
    }
}

fn parsed(text: &str) -> Option<Metric> {
    if let Some(rest) = text.strip_prefix("syscall:") {
        // The name of a 32-bit call contains a colon itself.
        let (name, part) = rest.rsplit_once(':')?;
        return match part {
            "wall" => Some(Metric::SyscallWall(name.to_owned())),
            "cpu" => Some(Metric::SyscallCpu(name.to_owned())),
            _ => None,
        };
    }
    if let Some(rest) = text.strip_prefix("ledger:") {
        let (kind, rest) = rest.split_once(':').map_or((rest, None), |(kind, rest)| (kind, Some(rest)));
        let kind: RowKind = of_word(kind)?;
        let (syscall, cause): (Option<&str>, Option<Cause>) = match (kind, rest) {
            (RowKind::Blocked, Some(rest)) => match rest.rsplit_once(':') {
                Some((name, cause)) if of_word::<Cause>(cause).is_some() => (Some(name), of_word(cause)),
                _ => (Some(rest), None),
            },
            (_, rest) => (rest, None),
        };
        let syscall = syscall.filter(|name| *name != NONE).map(str::to_owned);
        return Some(Metric::Ledger(RowKey { kind, syscall, cause }));
    }
    match text {
        "wall" => Some(Metric::Wall),
        "durable" => Some(Metric::Durable),
        "user" => Some(Metric::User),
        "sys" => Some(Metric::Sys),
        _ => None,
    }
}

impl TryFrom<String> for Metric {
    type Error = UnknownMetric;

    fn try_from(text: String) -> Result<Metric, UnknownMetric> {
        text.parse()
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> String {
        metric.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_a_word_and_back() {
        let row = |kind, syscall: Option<&str>, cause| {
            Metric::Ledger(RowKey { kind, syscall: syscall.map(str::to_owned), cause })
        };
        let all = [
            (Metric::Wall, "wall"),
            (Metric::Durable, "durable"),
            (Metric::SyscallWall("i386:5".to_owned()), "syscall:i386:5:wall"),
            (Metric::SyscallCpu("read".to_owned()), "syscall:read:cpu"),
            (row(RowKind::User, None, None), "ledger:user"),
            (row(RowKind::Kernel, Some("i386:5"), None), "ledger:kernel:i386:5"),
            (row(RowKind::Blocked, Some("read"), Some(Cause::DeviceRead)), "ledger:blocked:read:device-read"),
            (row(RowKind::Blocked, None, Some(Cause::Memory)), "ledger:blocked:-:memory"),
            (row(RowKind::Blocked, Some("i386:5"), None), "ledger:blocked:i386:5"),
        ];
        for (metric, text) in all {
            assert_eq!(metric.to_string(), text);
            assert_eq!(text.parse(), Ok(metric));
        }
        assert!("walls".parse::<Metric>().is_err());
        assert!("ledger:lost".parse::<Metric>().is_err());
    }
}
