//! The difference of two recordings as JUnit XML, which continuous integration shows as tests: a suite for each case, a test for each
//! gate; without gates a test that passes, or one that is skipped if no case is in both. The report is in a suite of its own, as output
//! that belongs to no test.

use inodyne_model::difference::{CaseName, Difference, GateOutcome, GateResult};

use crate::html::markup_free;
use crate::report::recordings::{case_name, gate_outcome, gates_heading, parts};
use crate::text::{self, TextOptions};

/// The difference as tests.
pub fn difference_junit(found: &Difference) -> String {
    let mut cases: Vec<Option<&CaseName>> = found.cases.iter().map(|case| Some(&case.case)).collect();
    if cases.is_empty() {
        cases.push(None);
    }
    let mut suites = String::new();
    let several = cases.len();
    for (at, case) in cases.into_iter().enumerate() {
        // Two cases may have the same name: each has every gate once, in its own place.
        let gates: Vec<&GateResult> = found.gates.iter().skip(at).step_by(several).collect();
        suites.push_str(&suite(case, &gates));
    }
    let report = markup_free_lines(&text::printed(parts(found), &TextOptions::default()));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"inodyne diff\" {}>\n{suites}\
         <testsuite name=\"report\" tests=\"0\" failures=\"0\" skipped=\"0\">\n\
         <system-out>{report}</system-out>\n</testsuite>\n</testsuites>\n",
        totals(&found.gates.iter().collect::<Vec<_>>(), found.cases.len())
    )
}

fn suite(case: Option<&CaseName>, gates: &[&GateResult]) -> String {
    let name = markup_free(&case.map_or_else(|| "no case in common".to_owned(), case_name));
    let tests: String = match gates {
        [] if case.is_none() => format!(
            "<testcase classname=\"{name}\" name=\"difference\"><skipped message=\"the recordings have {name}\"/></testcase>\n"
        ),
        [] => format!("<testcase classname=\"{name}\" name=\"difference\"/>\n"),
        gates => gates.iter().map(|result| test(&name, result)).collect(),
    };
    format!("<testsuite name=\"{name}\" {}>\n{tests}</testsuite>\n", totals(gates, case.into_iter().count()))
}

fn test(class: &str, result: &GateResult) -> String {
    let name = markup_free(&result.gate.to_string());
    let says = markup_free(&format!("{}: {}", gate_outcome(result.outcome), gates_heading(result)));
    let inside = match result.outcome {
        GateOutcome::Held => format!("<system-out>{says}</system-out>"),
        GateOutcome::Failed | GateOutcome::NotMeasured => format!("<failure message=\"{says}\">{says}</failure>"),
        GateOutcome::Undecided => format!("<skipped message=\"{says}\"/>"),
    };
    format!("<testcase classname=\"{class}\" name=\"{name}\">{inside}</testcase>\n")
}

/// How many tests there are, and how they ended; without gates one for each of `cases` cases, or one that is skipped if there are
/// none.
fn totals(gates: &[&GateResult], cases: usize) -> String {
    let count = |is: fn(GateOutcome) -> bool| gates.iter().filter(|result| is(result.outcome)).count();
    let is_empty = gates.is_empty() && cases == 0;
    let tests = if gates.is_empty() { cases.max(1) } else { gates.len() };
    let undecided = count(|outcome| outcome == GateOutcome::Undecided);
    let (failures, skipped) = (count(GateOutcome::fails), undecided + usize::from(is_empty));
    format!("tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\"")
}

/// Like [`markup_free`], which on its own would escape the line ends.
fn markup_free_lines(text: &str) -> String {
    text.lines().map(markup_free).collect::<Vec<_>>().join("\n")
}
