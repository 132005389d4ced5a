//! The sections of a report, by the names that a user gives them: one file and one line of [`SECTIONS`] for each.

use std::fmt;
use std::str::FromStr;

use super::definition::Definition;
use super::{calls, comparison, findings, functions, ledger, overhead, paths, runs, threads, verdict};

/// All sections, in the order of a report.
static SECTIONS: [&Definition; 11] = [
    &comparison::SECTION,
    &verdict::SECTION,
    &ledger::SECTION,
    &findings::SECTION,
    &functions::SECTION,
    &calls::SECTION,
    &paths::SECTION,
    &threads::SECTION,
    &runs::SECTION,
    &overhead::SECTION,
    &calls::BY_COMM,
];

/// One section of a report.
#[derive(Clone, Copy)]
pub struct Section(&'static Definition);

impl Section {
    /// The runs one by one: the section of a table without a section's name.
    pub const RUNS: Section = Section(&runs::SECTION);

    /// All sections, in the order of a report.
    pub fn all() -> impl Iterator<Item = Section> {
        SECTIONS.into_iter().map(Section)
    }

    /// The name used on the command line.
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    /// The names of all sections, with commas between.
    pub fn names() -> String {
        Section::all().map(Section::as_str).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn definition(self) -> &'static Definition {
        self.0
    }
}

impl PartialEq for Section {
    fn eq(&self, other: &Section) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Section {}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Section").field(&self.0.name).finish()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no section's; its text lists the names there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no section {0:?}: use {names}", names = Section::names())]
pub struct UnknownSection(String);

impl FromStr for Section {
    type Err = UnknownSection;

    fn from_str(name: &str) -> Result<Section, UnknownSection> {
        Section::all().find(|section| section.as_str() == name).ok_or_else(|| UnknownSection(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_its_section() {
        for section in Section::all() {
            assert_eq!(section.to_string().parse(), Ok(section));
        }
        assert!("cpu".parse::<Section>().unwrap_err().to_string().contains("by-comm"));
    }
}
