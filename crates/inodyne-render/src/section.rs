//! The parts of a report, by the names that a user gives them.

use std::fmt;
use std::str::FromStr;

/// One part of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Cases held against each other, and where their differences come from.
    Comparison,
    /// What ran where, how long it took, and the plainest reason.
    Verdict,
    /// Where the wall-clock time went.
    Ledger,
    /// The diagnoses.
    Findings,
    /// The table of system calls.
    Syscalls,
    /// Paths that were looked up, where they were asked for.
    Paths,
    /// Threads and processes.
    Threads,
    /// All runs of the same thing.
    Runs,
    /// What the tracing cost, and what was lost.
    Overhead,
    /// Tables of system calls by command name. Shown only where asked for.
    ByComm,
}

impl Section {
    /// All of them, in the order of a report.
    pub const ALL: [Section; 10] = [
        Section::Comparison,
        Section::Verdict,
        Section::Ledger,
        Section::Findings,
        Section::Syscalls,
        Section::Paths,
        Section::Threads,
        Section::Runs,
        Section::Overhead,
        Section::ByComm,
    ];

    /// The name used on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Section::Comparison => "comparison",
            Section::Verdict => "verdict",
            Section::Ledger => "ledger",
            Section::Findings => "findings",
            Section::Syscalls => "syscalls",
            Section::Paths => "paths",
            Section::Threads => "threads",
            Section::Runs => "runs",
            Section::Overhead => "overhead",
            Section::ByComm => "by-comm",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no section's; its text lists the names there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSection(String);

impl fmt::Display for UnknownSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no section {:?}: use {}", self.0, Section::ALL.map(Section::as_str).join(", "))
    }
}

impl std::error::Error for UnknownSection {}

impl FromStr for Section {
    type Err = UnknownSection;

    fn from_str(name: &str) -> Result<Section, UnknownSection> {
        let known = Section::ALL.into_iter().find(|section| section.as_str() == name);
        known.ok_or_else(|| UnknownSection(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_its_section() {
        for section in Section::ALL {
            assert_eq!(section.to_string().parse(), Ok(section));
        }
        assert!("cpu".parse::<Section>().unwrap_err().to_string().contains("by-comm"));
    }
}
