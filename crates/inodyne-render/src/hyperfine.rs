//! Times as `hyperfine --export-json` writes them (version 1.x), so that scripts made for it keep working.
//!
//! The shape is that of `src/benchmark/benchmark_result.rs` in hyperfine 1.19: seconds; `stddev` with n - 1, `null` for
//! one run; `user` and `system` are means; a command killed by a signal has 128 plus its number as exit code. Only
//! untraced runs are timings. If there are several places or cache states, they are `parameters` and also part
//! of the command's name, by which hyperfine's own scripts tell results apart. Version 2 has another
//! format, which is not written here.

use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::recording::Recording;
use inodyne_model::run::Run;
use serde::Serialize;

use crate::json::write_harmless;
use crate::report::case::Case;
use crate::report::names;

#[derive(Serialize)]
struct Summary {
    results: Vec<BenchmarkResult>,
}

#[derive(Serialize)]
struct BenchmarkResult {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    memory_usage_byte: Vec<u64>,
    exit_codes: Vec<i32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'static str, String>,
}

/// One result for each case with untraced runs.
pub fn hyperfine(recording: &Recording) -> String {
    let cases = Case::all(recording);
    let caches = |case: &Case<'_>| case.cache() != cases[0].cache();
    let has_several = Several { places: recording.places.len() > 1, caches: cases.iter().any(caches) };
    let results = cases.iter().filter_map(|case| result(recording, case, has_several)).collect();
    let text = serde_json::to_string_pretty(&Summary { results }).expect("plain data");
    let mut out = Vec::new();
    write_harmless(&text, &mut out).expect("writing to memory does not fail");
    out.push(b'\n');
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// What has to be told apart.
#[derive(Clone, Copy)]
struct Several {
    places: bool,
    caches: bool,
}

fn result(recording: &Recording, case: &Case<'_>, several: Several) -> Option<BenchmarkResult> {
    let wall = &case.statistics()?.wall;
    let runs: Vec<&Run> = case.untraced().collect();
    let mean =
        |time: fn(&Run) -> Nanos| runs.iter().map(|run| time(run).as_secs_f64()).sum::<f64>() / runs.len() as f64;
    let mut command = case.command().to_owned();
    let mut parameters = BTreeMap::new();
    if several.places {
        let place = names::place(recording, case.key.place);
        command.push_str(&format!(" on {place}"));
        parameters.insert("place", place);
    }
    if several.caches {
        let cache = case.cache().to_string();
        command.push_str(&format!(", {cache}"));
        parameters.insert("cache", cache);
    }
    Some(BenchmarkResult {
        command,
        mean: wall.mean_ns.as_secs_f64(),
        stddev: (wall.n > 1).then(|| wall.sd_ns.as_secs_f64()),
        median: wall.median_ns.as_secs_f64(),
        user: mean(|run| run.usage.user_ns),
        system: mean(|run| run.usage.sys_ns),
        min: wall.min_ns.as_secs_f64(),
        max: wall.max_ns.as_secs_f64(),
        times: runs.iter().map(|run| run.wall_ns.as_secs_f64()).collect(),
        memory_usage_byte: runs.iter().map(|run| run.usage.max_rss_bytes).collect(),
        exit_codes: runs.iter().map(|run| run.exit.shell_code()).collect(),
        parameters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use inodyne_model::run::{CacheState, Exit};
    use inodyne_model::sample;
    use serde_json::{Value, json};

    fn exported(recording: &Recording) -> Vec<Value> {
        let mut recording = recording.clone();
        inodyne_analyse::explain(&mut recording);
        let json: Value = serde_json::from_str(&hyperfine(&recording)).unwrap();
        json["results"].as_array().unwrap().clone()
    }

    #[test]
    fn times_are_in_seconds_and_failures_in_the_exit_codes() {
        let mut recording = sample::empty();
        recording.places = vec![sample::ext4("ext4", &[])];
        recording.commands = vec![sample::command("find .")];
        for (ms, exit) in [(100.0, Exit::Code(0)), (300.0, Exit::Code(3)), (200.0, Exit::Signal(9))] {
            let run = sample::run(0, CacheState::Warm, false, sample::ms(ms));
            recording.push_run(Run { exit, ..run });
        }
        recording.push_run(sample::run(0, CacheState::Warm, true, sample::ms(900.0)));
        let expected = json!({
            "command": "find .", "mean": 0.2, "stddev": 0.1, "median": 0.2, "user": 0.02, "system": 0.1,
            "min": 0.1, "max": 0.3, "times": [0.1, 0.3, 0.2], "memory_usage_byte": [4300000, 4300000, 4300000],
            "exit_codes": [0, 3, 137],
        });
        let [found] = &exported(&recording)[..] else { panic!("one case") };
        for (key, value) in expected.as_object().unwrap() {
            match (value.as_f64(), found[key].as_f64()) {
                (Some(a), Some(b)) => assert!((a - b).abs() < 1e-9, "{key}: {b}"),
                _ => assert_eq!(&found[key], value, "{key}"),
            }
        }
        assert_eq!(found.as_object().unwrap().len(), expected.as_object().unwrap().len());
        recording.runs.truncate(1);
        recording.order.truncate(1);
        assert_eq!(exported(&recording)[0]["stddev"], Value::Null);
    }

    #[test]
    fn a_terminal_obeys_nothing_in_a_command() {
        let mut recording = sample::overlay_recording();
        recording.commands[0].label = "a\u{9b}2J\u{202e}".to_owned();
        inodyne_analyse::explain(&mut recording);
        let text = hyperfine(&recording);
        assert!(text.contains(r#""command": "a\u009b2J\u202e on ext4, cold""#), "{text}");
        assert!(exported(&recording)[0]["command"].as_str().unwrap().starts_with("a\u{9b}2J\u{202e} on"));
    }

    #[test]
    fn places_and_caches_are_parameters() {
        let results = exported(&sample::overlay_recording());
        let commands: Vec<&str> = results.iter().map(|result| result["command"].as_str().unwrap()).collect();
        let of = |rest: &str| format!("python manage.py check on {rest}");
        assert_eq!(commands, ["ext4, cold", "overlay, cold", "ext4, warm", "overlay, warm"].map(of));
        assert_eq!(results[1]["parameters"], json!({"place": "overlay", "cache": "cold"}));
        assert!(exported(&sample::empty()).is_empty());
    }
}
