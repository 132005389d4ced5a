//! Diagnoses: what is wrong, what it costs, what to change. One file each, and a line in [`DIAGNOSES`].
//!
//! A diagnosis looks at one trace of an explained recording and says nothing where it does not apply, or where nobody
//! pays for what it knows. What it says comes with evidence, and a prediction that can be tested.

mod dtype_missing;
mod stat_users;

use inodyne_model::finding::Finding;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

/// One trace and what stands around it.
pub(crate) struct Case<'a> {
    pub(crate) recording: &'a Recording,
    /// Index of the trace in the recording.
    pub(crate) index: usize,
    pub(crate) trace: &'a Trace,
}

type Diagnosis = fn(&Case<'_>) -> Option<Finding>;

/// Every diagnosis there is.
const DIAGNOSES: &[Diagnosis] = &[dtype_missing::diagnose];

/// The findings of all traces, of each the one that concerns most of the time first.
pub fn all(recording: &Recording) -> Vec<Finding> {
    let of_trace = |(index, trace)| {
        let case = Case { recording, index, trace };
        let mut found: Vec<_> = DIAGNOSES.iter().filter_map(|diagnose| diagnose(&case)).collect();
        found.sort_by(|a, b| b.share_of_wall.total_cmp(&a.share_of_wall));
        found
    };
    recording.traces.iter().enumerate().flat_map(of_trace).collect()
}
