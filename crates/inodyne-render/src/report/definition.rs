//! What each section provides: its name, how it is shown to people, and its rows for programs.

use inodyne_model::recording::Recording;

use super::block::Page;
use super::case::Case;
use super::table::Records;

/// What a section is.
pub(crate) struct Definition {
    /// The name used on the command line.
    pub(crate) name: &'static str,
    /// Whether it is shown if no section is asked for.
    pub(crate) unasked: bool,
    /// Adds the section to a report for people.
    pub(crate) show: Show,
    /// The section for programs.
    pub(crate) records: fn(&Recording) -> Records,
}

/// What a section is about.
pub(crate) enum Show {
    /// The whole recording, before the cases.
    Recording(for<'a> fn(&mut Page<'a>, &'a Recording, &[Case<'a>])),
    /// Each case.
    Case(for<'a> fn(&mut Page<'a>, &Case<'a>)),
}
