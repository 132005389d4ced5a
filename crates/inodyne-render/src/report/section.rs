//! The sections of a report, by the names that a user gives them: one file and one line of [`SECTIONS`] for each.

use std::fmt;
use std::str::FromStr;

use inodyne_model::call_class::CallClass;

use super::definition::Definition;
use super::{
    block_io, calls, comparison, files, findings, functions, io_over_time, journals, ledger, over_time, overhead,
    page_cache, paths, processes, requests, runs, threads, tune, verdict,
};

/// All sections, in the order of a report.
static SECTIONS: [&Definition; 20] = [
    &tune::SECTION,
    &comparison::SECTION,
    &verdict::SECTION,
    &ledger::SECTION,
    &over_time::SECTION,
    &requests::SECTION,
    &findings::SECTION,
    &functions::SECTION,
    &calls::SECTION,
    &paths::SECTION,
    &files::SECTION,
    &block_io::SECTION,
    &io_over_time::SECTION,
    &journals::SECTION,
    &page_cache::SECTION,
    &processes::SECTION,
    &threads::SECTION,
    &runs::SECTION,
    &overhead::SECTION,
    &calls::BY_COMM,
];

/// Sections of system calls, for which a class of calls can be asked for.
const OF_CALLS: [&str; 2] = [calls::SECTION.name, calls::BY_COMM.name];

/// Another name for the section of system calls: `calls=file`.
const CALLS: &str = "calls";

/// One section of a report. Two are equal if they are the same section, whichever calls they are about.
#[derive(Clone, Copy)]
pub struct Section {
    definition: &'static Definition,
    /// Only calls of this class.
    calls: Option<CallClass>,
}

impl Section {
    /// The runs one by one: the section of a table if no section is named.
    pub const RUNS: Section = Section::whole(&runs::SECTION);

    const fn whole(definition: &'static Definition) -> Section {
        Section { definition, calls: None }
    }

    /// All sections, in the order of a report.
    pub fn all() -> impl Iterator<Item = Section> {
        SECTIONS.into_iter().map(Section::whole)
    }

    /// The name used on the command line.
    pub fn as_str(self) -> &'static str {
        self.definition.name
    }

    /// The names of all sections, separated by commas.
    pub fn names() -> String {
        Section::all().map(Section::as_str).collect::<Vec<_>>().join(", ")
    }

    /// How classes of calls are asked for: `calls=file, calls=desc …`.
    pub fn classes_of_calls() -> String {
        CallClass::ALL.map(|class| format!("{CALLS}={class}")).join(", ")
    }

    pub(crate) fn definition(self) -> &'static Definition {
        self.definition
    }

    /// The class of calls that it is about; `None` for all calls.
    pub(crate) fn calls(self) -> Option<CallClass> {
        self.calls
    }
}

impl PartialEq for Section {
    fn eq(&self, other: &Section) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Section {}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Section").field(&self.as_str()).finish()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is not a section's; its text lists the valid names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no section {0:?}: use {names}; of calls also {classes}", names = Section::names(), classes = Section::classes_of_calls())]
pub struct UnknownSection(String);

impl FromStr for Section {
    type Err = UnknownSection;

    fn from_str(name: &str) -> Result<Section, UnknownSection> {
        let unknown = || UnknownSection(name.to_owned());
        let (section, class) = name.split_once('=').map_or((name, None), |(section, class)| (section, Some(class)));
        let section = if section == CALLS { calls::SECTION.name } else { section };
        let found = Section::all().find(|found| found.as_str() == section).ok_or_else(unknown)?;
        match class {
            None => Ok(found),
            Some(class) if OF_CALLS.contains(&section) => {
                Ok(Section { calls: Some(class.parse().map_err(|()| unknown())?), ..found })
            }
            Some(_) => Err(unknown()),
        }
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
        assert_eq!("calls=%file".parse::<Section>().map(Section::calls), Ok(Some(CallClass::File)));
        assert_eq!("by-comm=network".parse(), Ok(Section::whole(&calls::BY_COMM)));
        assert!(["ledger=file", "calls=files", "calls="].iter().all(|name| name.parse::<Section>().is_err()));
        assert!("cpu".parse::<Section>().unwrap_err().to_string().contains("by-comm"));
    }
}
