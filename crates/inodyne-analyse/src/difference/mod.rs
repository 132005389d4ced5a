//! Two recordings compared: cases of both, by command, place and state of the caches.
//!
//! ```text
//! matching   which case of the old recording corresponds to which of the new one
//! differing  what else is not the same: machine, place, command, how it ended
//! calls      calls, errors and bytes: counted, so that any difference is one
//! changed    findings and paths that came or went
//! gates      what must not become worse
//! ```
//!
//! Times are compared, and ledgers subtracted, as those of two cases of one recording are ([`crate::comparison`]); pairs are then the
//! first runs of both, the second ones, and so on. That is a fair test of what the runs say, since they are alike within each
//! recording, but says nothing about what else was different on the machine that day: whoever shows it has to say so.

mod calls;
mod changed;
mod differing;
mod gates;
mod matching;
#[cfg(test)]
mod tests;

use inodyne_model::comparison::{Comparison, unlike_ledgers};
use inodyne_model::difference::{CaseDifference, Difference, SCHEMA, Sides};
use inodyne_model::gate::Gate;
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use crate::comparison;
use crate::comparison::cases::PairedCases;

/// What the new recording says that the old one did not, and whether the gates hold. Both have been explained already.
pub fn difference(old: &Recording, new: &Recording, gates: &[Gate]) -> Difference {
    let recordings = Sides { old, new };
    let cases = recordings.map(matching::cases);
    let matched = matching::matched(&recordings, &cases);
    let pairs: Vec<PairedCases<'_>> =
        matched.pairs.iter().map(|sides| PairedCases { a: &cases.old[sides.old], b: &cases.new[sides.new] }).collect();
    let mut compared = comparison::compared(&pairs, new.margin);
    compared.retain(|(_, comparison)| matches!(comparison.metric, Metric::Wall | Metric::Durable));
    let case = |(number, pair): (usize, &PairedCases<'_>)| {
        let times = compared.iter().filter(|(of, _)| *of == number).map(|(_, comparison)| comparison.clone());
        case_difference(&recordings, pair, times.collect())
    };
    let cases: Vec<CaseDifference> = pairs.iter().enumerate().map(case).collect();
    let shortfalls = pairs
        .iter()
        .map(|pair| gates::Shortfall::of(&recordings, &Sides { old: pair.a.traces(), new: pair.b.traces() }));
    Difference {
        schema: SCHEMA,
        differs: differing::machines(&recordings),
        gates: gates::judged(gates, &cases, &shortfalls.collect::<Vec<_>>()),
        unmatched: matched.unmatched,
        cases,
    }
}

fn case_difference(recordings: &Sides<&Recording>, pair: &PairedCases<'_>, times: Vec<Comparison>) -> CaseDifference {
    let sides = Sides { old: pair.a, new: pair.b };
    let traces: Sides<&[&Trace]> = sides.map(|case| case.traces());
    let both_traced = !traces.old.is_empty() && !traces.new.is_empty();
    let mut inexact = calls::inexact(&traces);
    inexact.extend(unlike_ledgers(pair.traces().into_iter().flat_map(|(old, new)| [old, new])));
    CaseDifference {
        case: matching::name(recordings.new, pair.b.key),
        differs: differing::cases(recordings, &sides),
        inexact,
        times,
        traces: traces.map(<[_]>::len),
        ledger: comparison::subtracted(pair),
        total: both_traced.then(|| calls::total(&traces)),
        calls: if both_traced { calls::by_name(&traces) } else { Vec::new() },
        findings: if both_traced { changed::findings(recordings, &traces) } else { Default::default() },
        paths: changed::paths(&traces),
    }
}
