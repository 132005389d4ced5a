//! When an alternative has lost against the first case of its group: after a few pairs that show no gain, so that time goes to those
//! that may win. Pure.
//!
//! Losing is not a verdict. Those that are left are measured again, on fresh runs, before anything is reported.

use inodyne_analyse::statistics::summary::median_of;
use inodyne_model::case::CaseKey;
use inodyne_model::recording::Recording;
use inodyne_model::run::Run;
use inodyne_model::tuning::Objective;

/// Every case against the first one of its group; those that lose take no further part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Race {
    /// What they race for.
    pub objective: Objective,
    /// Gains below this fraction count as none. None where every case stays to the end.
    pub margin: Option<f64>,
}

/// Worse by at least this many margins in every pair so far, of which there are two or more: it will no longer win.
const FAR_BEHIND: f64 = 5.0;
/// After this many pairs none of which shows a gain.
const NO_GAIN: usize = 3;
/// After this many pairs whose median shows none.
const NO_GAIN_IN_THE_MIDDLE: usize = 4;

impl Race {
    /// Whether a case takes no further part, judging by its runs, each after that of the first case in the same block: it has lost, or
    /// ends differently from the first case.
    pub fn is_over_for(self, pairs: &[(&Run, &Run)]) -> bool {
        let ratio = |(a, b): &(&Run, &Run)| Some(self.objective.cost(b)? / self.objective.cost(a)?);
        let ratios: Vec<f64> = pairs.iter().filter_map(ratio).collect();
        self.is_lost(&ratios) || pairs.iter().any(|(a, b)| a.exit != b.exit)
    }

    /// Whether a case with these ratios of costs to the first one, pair by pair, has lost.
    pub fn is_lost(self, ratios: &[f64]) -> bool {
        let (pairs, Some(margin)) = (ratios.len(), self.margin) else { return false };
        let all_above = |limit: f64| ratios.iter().all(|ratio| *ratio >= limit);
        pairs >= 2 && all_above(1.0 + FAR_BEHIND * margin)
            || pairs >= NO_GAIN && all_above(1.0 - margin)
            || pairs >= NO_GAIN_IN_THE_MIDDLE && median_of(ratios) >= 1.0
    }
}

/// The untraced runs of a case, each after that of the first case in the same block.
pub(crate) fn pairs(recording: &Recording, first: CaseKey, case: CaseKey) -> Vec<(&Run, &Run)> {
    let runs = |case: CaseKey| recording.runs.iter().filter(move |run| !run.traced && run.key() == case);
    runs(case).filter_map(|run| Some((runs(first).find(|of| of.block == run.block)?, run))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shows_no_gain_loses_and_nobody_after_one_pair() {
        let race = |margin| Race { objective: Objective::Exit, margin };
        let (race, to_the_end) = (race(Some(0.02)), race(None));
        let lost = [&[9.0][..], &[1.2, 1.3], &[1.2, 1.01], &[0.99, 1.0, 1.1], &[0.9, 1.1, 1.1], &[0.9, 1.1, 1.1, 1.0]];
        assert_eq!(lost.map(|ratios| race.is_lost(ratios)), [false, true, false, true, false, true]);
        assert!(!race.is_lost(&[0.8, 0.9, 1.3, 0.9, 0.7]) && !to_the_end.is_lost(&[9.0; 9]));
    }
}
