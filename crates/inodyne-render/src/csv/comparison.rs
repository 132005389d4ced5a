//! What was concluded: comparisons and findings.

use inodyne_model::recording::Recording;

use super::{case, field, table, word};

/// A row for each comparison.
pub(super) fn comparisons(recording: &Recording) -> String {
    let columns = [
        "a_place",
        "a_command",
        "b_place",
        "b_command",
        "cache",
        "metric",
        "traced",
        "pairs",
        "failed",
        "a_median_ns",
        "b_median_ns",
        "ratio",
        "ci_low",
        "ci_high",
        "p",
        "p_corrected",
        "margin",
        "verdict",
    ];
    let rows = recording.comparisons.iter().map(|found| {
        let [a_place, a_command, cache] = case(recording, found.a.place, found.a.command, found.cache);
        let [b_place, b_command, _] = case(recording, found.b.place, found.b.command, found.cache);
        [
            a_place,
            a_command,
            b_place,
            b_command,
            cache,
            found.metric.to_string(),
            found.traced.to_string(),
            found.pairs.to_string(),
            found.failed.to_string(),
            found.a_median_ns.0.to_string(),
            found.b_median_ns.0.to_string(),
            field(found.ratio),
            field(found.ci_low),
            field(found.ci_high),
            found.p.to_string(),
            found.p_corrected.to_string(),
            found.margin.to_string(),
            word(found.verdict),
        ]
    });
    table(columns, rows)
}

/// A row for each finding.
pub(super) fn findings(recording: &Recording) -> String {
    let columns = [
        "id",
        "title",
        "place",
        "command",
        "cache",
        "trace",
        "share_of_wall",
        "now_ns",
        "predicted_ns",
        "predicted_low_ns",
        "predicted_high_ns",
        "bound",
        "avoidable_calls",
        "proved_ratio",
        "proved_ci_low",
        "proved_ci_high",
        "proved_within",
        "cure",
    ];
    let rows = recording.findings.iter().map(|finding| {
        let trace = recording.traces.get(finding.trace);
        let cache = trace.map(|trace| trace.cache).unwrap_or_default();
        let [place, command, cache] = case(recording, finding.place, finding.command, cache);
        let (predicted, proved) = (&finding.predicted, finding.proved.as_ref());
        [
            finding.id.clone(),
            finding.title.clone(),
            place,
            command,
            cache,
            finding.trace.to_string(),
            finding.share_of_wall.to_string(),
            predicted.now_ns.0.to_string(),
            predicted.wall_ns.0.to_string(),
            predicted.low_ns.0.to_string(),
            predicted.high_ns.0.to_string(),
            finding.bound.to_string(),
            field(finding.avoidable_calls),
            field(proved.map(|proof| proof.ratio)),
            field(proved.map(|proof| proof.ci_low)),
            field(proved.map(|proof| proof.ci_high)),
            field(proved.map(|proof| proof.within)),
            finding.cure.join("; "),
        ]
    });
    table(columns, rows)
}
