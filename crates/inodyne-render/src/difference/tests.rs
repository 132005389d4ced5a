//! All forms show the same numbers.

use std::collections::BTreeMap;

use inodyne_analyse::{difference, explain};
use inodyne_model::difference::{Difference, GateOutcome, Side, Unmatched};
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;
use inodyne_model::sample;
use inodyne_model::trace::{PathCount, Paths};

use crate::*;

const GATES: [&str; 6] = [
    "calls(newfstatat) > +5%",
    "calls(openat) > +20",
    "errors > 1000",
    "wall > +10%",
    "finding(dtype-missing)",
    "paths > +1",
];

/// `find` with types, or without: then it also looks up paths that it did not before.
fn find(typed: bool) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("place", &[])];
    recording.commands = vec![sample::command("find . -name '<b>'")];
    let mut trace = sample::find_trace(0, CacheState::Cold, typed);
    let path = |path: &str| PathCount {
        path: path.to_owned(),
        syscall: "newfstatat".to_owned(),
        calls: 7,
        not_found: 0,
        wall_ns: sample::ms(1.0),
    };
    let names: &[&str] = if typed { &["/etc/a", "/etc/b"] } else { &["/etc/b", "/etc/c|d", "/etc/\x1b[2Je"] };
    trace.paths = Some(Paths { looked_up: names.iter().map(|name| path(name)).collect(), not_kept: 0 });
    if !typed {
        let stat = &mut trace.by_comm[0].syscalls[0];
        stat.errors = 201;
        stat.errors_by_errno.insert("ENOENT".to_owned(), 201);
    }
    recording.push_run(sample::run(0, CacheState::Cold, true, trace.wall_ns));
    recording.traces.push(trace);
    recording
}

fn between(mut old: Recording, mut new: Recording, gates: &[&str]) -> Difference {
    explain(&mut old);
    explain(&mut new);
    difference(&old, &new, &gates.iter().map(|gate| gate.parse().unwrap()).collect::<Vec<_>>())
}

fn regressed() -> Difference {
    let mut new = find(false);
    new.host.kernel = "6.19.0".to_owned();
    between(find(true), new, &GATES)
}

#[test]
fn a_regression_in_text() {
    insta::assert_snapshot!(difference_text(&regressed(), &TextOptions::default()));
}

#[test]
fn a_regression_in_markdown() {
    insta::assert_snapshot!(difference_markdown(&regressed()));
}

#[test]
fn a_regression_in_junit() {
    insta::assert_snapshot!(difference_junit(&regressed()));
}

#[test]
fn a_recording_and_itself() {
    let recording = sample::find_recording();
    insta::assert_snapshot!(difference_text(&between(recording.clone(), recording, &[]), &TextOptions::default()));
}

#[test]
fn all_forms_say_the_same_numbers() {
    let found = regressed();
    let json: serde_json::Value = serde_json::from_str(&difference_json(&found)).unwrap();
    let case = &json["cases"][0];
    let wide = TextOptions { width: 200, ..TextOptions::default() };
    let forms = [difference_text(&found, &wide), difference_markdown(&found), difference_html(&found)];
    let mut seen = 0;
    for call in case["calls"].as_array().unwrap() {
        let (old, new) = (call["calls"]["old"].as_u64().unwrap(), call["calls"]["new"].as_u64().unwrap());
        if old == new {
            continue;
        }
        for number in [old, new, new.abs_diff(old)] {
            let grouped = inodyne_model::count::Grouped(number).to_string();
            assert!(forms.iter().all(|form| form.contains(&grouped)), "{}: {grouped}", call["name"]);
            seen += 1;
        }
    }
    assert!(seen > 0);
    assert_eq!(json["gates"][0]["gate"], "calls(newfstatat) > +5%");
    assert_eq!(json["gates"][0]["outcome"], "failed");
    assert_eq!(json["gates"][0]["figures"]["new"], 33_055);
    assert_eq!(case["paths"]["new"][0]["path"], "/etc/\u{1b}[2Je");
    assert!(forms.iter().all(|form| !form.contains('\u{1b}') && form.contains("ENOENT 1 → 201")));
}

#[test]
fn a_failure_for_another_reason_is_a_difference() {
    let with = |errno: &str| {
        let mut recording = find(true);
        let call = &mut recording.traces[0].by_comm[0].syscalls[0];
        (call.errors, call.errors_by_errno) = (1, BTreeMap::from([(errno.to_owned(), 1)]));
        recording
    };
    let text = difference_text(&between(with("ENOENT"), with("EACCES"), &[]), &TextOptions::default());
    assert!(text.contains("EACCES 0 → 1, ENOENT 1 → 0") && !text.contains("are the same"), "{text}");
}

#[test]
fn a_page_says_what_became_of_each_gate() {
    let mut found = regressed();
    found.unmatched.push(Unmatched { only: Side::Old, case: found.cases[0].case.clone() });
    let page = difference_html(&found);
    for lead in ["FAILED", "held", "undecided", "new", "old"] {
        assert!(page.contains(&format!(">{lead} </span>")), "{lead}");
    }
    assert!(page.contains("<span class=\"warning\">FAILED </span>calls(newfstatat) &gt; +5%"), "{page}");
}

#[test]
fn without_a_case_in_common_the_only_test_is_skipped() {
    let found = between(sample::empty(), find(true), &[]);
    assert!(found.cases.is_empty());
    let xml = difference_junit(&found);
    assert!(xml.contains("<skipped message=\"the recordings have no case in common\"/>"), "{xml}");
    assert_eq!(xml.matches(" tests=\"1\" failures=\"0\" skipped=\"1\">").count(), 2, "{xml}");
    // Gates for which nothing was measured are tests of their own.
    let xml = difference_junit(&between(sample::empty(), find(true), &GATES));
    assert!(!xml.contains("<skipped") && xml.contains(" tests=\"6\" failures=\"6\" skipped=\"0\""), "{xml}");
}

#[test]
fn cases_of_the_same_name_have_a_gate_each() {
    let mut found = regressed();
    found.cases.push(found.cases[0].clone());
    found.gates = found.gates.iter().flat_map(|result| [result.clone(), result.clone()]).collect();
    found.gates[1].outcome = GateOutcome::Held;
    let xml = difference_junit(&found);
    assert_eq!(xml.matches("<testcase ").count(), found.gates.len(), "{xml}");
    let suites: Vec<&str> = xml.split("<testsuite name=").collect();
    let failures = |suite: &str| suite.matches("<failure ").count();
    assert_eq!(failures(suites[1]), failures(suites[2]) + 1, "{xml}");
}

#[test]
fn xml_is_whole_whatever_names_there_are() {
    for found in [
        regressed(),
        between(sample::pipeline_recording(), find(true), &[]),
        between(sample::empty(), find(true), &GATES),
    ] {
        let xml = difference_junit(&found);
        assert!(!xml.contains("<b>") && !xml.contains('\u{1b}') && !xml.contains('\u{202e}'), "{xml}");
        for tag in ["testsuites", "testsuite", "system-out"] {
            let opened = xml.matches(&format!("<{tag} ")).count() + xml.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, xml.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
