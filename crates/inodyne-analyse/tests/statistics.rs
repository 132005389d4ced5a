//! Our statistics against those of SciPy, kept as a fixture: `scripts/make-statistics-fixtures` makes it.

use inodyne_analyse::statistics::bootstrap::{Pair, median_ratio, ratio_of_means, ratio_of_medians};
use inodyne_analyse::statistics::change_point::change_point;
use inodyne_analyse::statistics::holm;
use inodyne_analyse::statistics::outliers::outliers;
use inodyne_analyse::statistics::paired::{p_value, signed_rank};
use inodyne_analyse::statistics::summary::{mean, median_of, quantile, sd};
use inodyne_analyse::statistics::trend::trend;
use inodyne_model::comparison::Interval;
use inodyne_model::random::Random;
use serde_json::Value;

fn fixture() -> Value {
    serde_json::from_str(include_str!("fixtures/statistics.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[track_caller]
fn same(what: &Value, ours: f64, theirs: &Value) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-3), "{what}: {ours}, SciPy says {theirs}");
}

#[test]
fn summaries_are_those_of_scipy() {
    for sample in fixture()["samples"].as_array().unwrap() {
        let (name, values, theirs) = (&sample["name"], numbers(&sample["values"]), &sample["summary"]);
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        same(name, mean(&values), &theirs["mean"]);
        same(name, median_of(&values), &theirs["median"]);
        same(name, sd(&values), &theirs["sd"]);
        for (q, key) in [(0.1, "q10"), (0.9, "q90"), (0.99, "q99")] {
            same(name, quantile(&sorted, q), &theirs[key]);
        }
    }
}

#[test]
fn trends_steps_and_outliers_are_those_of_scipy() {
    for sample in fixture()["samples"].as_array().unwrap() {
        let (name, values) = (&sample["name"], numbers(&sample["values"]));
        let line = trend(&values).unwrap();
        same(name, line.slope, &sample["trend"]["slope"]);
        same(name, line.start, &sample["trend"]["start"]);
        same(name, line.p, &sample["trend"]["p"]);
        let step = change_point(&values).unwrap();
        same(name, step.p, &sample["step"]["p"]);
        assert_eq!(step.at as u64, sample["step"]["at"], "{name}");
        let places: Vec<Value> = outliers(&values).into_iter().map(Value::from).collect();
        assert_eq!(Value::Array(places), sample["outliers"], "{name}");
    }
}

#[test]
fn paired_tests_are_those_of_scipy() {
    let fixture = fixture();
    for sample in fixture["pairs"].as_array().unwrap() {
        same(&sample["name"], p_value(&pairs(sample)), &sample["p"]);
    }
    let ties = &fixture["signed_rank_with_ties"];
    same(&"ties".into(), signed_rank(&numbers(&ties["values"])), &ties["p"]);
}

fn pairs(sample: &Value) -> Vec<Pair> {
    numbers(&sample["a"]).into_iter().zip(numbers(&sample["b"])).collect()
}

#[test]
fn intervals_are_those_of_scipy_but_for_chance() {
    for sample in fixture()["pairs"].as_array().unwrap() {
        let (name, pairs) = (&sample["name"], pairs(sample));
        let mut random = Random::seeded(1);
        near(name, ratio_of_means(&pairs, &mut random).unwrap(), &sample["means"], 0.05);
        // Medians of resamples take few values: one resample more or less may move an end to the next of them.
        near(name, ratio_of_medians(&pairs, &mut random).unwrap(), &sample["medians"], 0.12);
        near(name, median_ratio(&pairs, &mut random).unwrap(), &sample["ratios"], 0.12);
    }
}

/// The same value, and ends that differ by no more than a fraction of the interval.
fn near(what: &Value, ours: Interval, theirs: &Value, part: f64) {
    same(what, ours.value, &theirs["value"]);
    let (low, high) = (theirs["low"].as_f64().unwrap(), theirs["high"].as_f64().unwrap());
    let allowed = (high - low) * part;
    let off = (ours.low - low).abs().max((ours.high - high).abs());
    assert!(off <= allowed, "{what}: [{}, {}], SciPy says [{low}, {high}]", ours.low, ours.high);
}

#[test]
fn corrections_are_those_of_holm() {
    let theirs = &fixture()["holm"];
    for (ours, theirs) in
        holm::corrected(&numbers(&theirs["p"])).into_iter().zip(theirs["corrected"].as_array().unwrap())
    {
        same(&"holm".into(), ours, theirs);
    }
}
