//! What must hold for every page, checked without a browser; `tests/browser` uses one.

use inodyne_model::host::Host;
use inodyne_model::recording::Recording;
use inodyne_model::sample;

use super::html;

fn page(mut recording: Recording) -> String {
    inodyne_analyse::explain(&mut recording);
    html(&recording)
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    for recording in [sample::empty(), sample::find_recording(), sample::pipeline_recording()] {
        let page = page(recording);
        for outside in ["http://", "https://", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML"] {
            assert!(!page.contains(outside), "{outside} in the page");
        }
        assert!(page.contains("default-src &#39;none&#39;"));
    }
}

#[test]
fn names_are_text() {
    const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!-- \u{202e}\" ' & \u{2028}";
    let mut recording = sample::find_recording();
    recording.commands[0].label = HOSTILE.to_owned();
    recording.places[0].label = HOSTILE.to_owned();
    for trace in &mut recording.traces {
        trace.observed.threads[0].comm = HOSTILE.to_owned();
        trace.by_comm[0].syscalls[0].name = HOSTILE.to_owned();
        trace.observed.stacks[0].frames[0] = inodyne_model::stack::Frame::Symbol(HOSTILE.to_owned());
    }
    let (page, plain) = (page(recording), page(sample::find_recording()));
    for harmful in ["<img", "<!--", "\u{202e}", "\u{2028}"] {
        assert!(!page.contains(harmful), "{harmful:?} in the page");
    }
    assert_eq!(page.matches("</script").count(), plain.matches("</script").count());
    assert!(page.contains("\\u{202e}"), "the mark is shown");
}

/// What the text report says about a study, the page says too: verdicts by part, and whether each expectation holds.
#[test]
fn a_study_says_what_came_out() {
    let recording = crate::text::tests::study();
    let page = html(&recording);
    let text =
        crate::text(&recording, &crate::TextOptions { width: 200, verbose: true, ..crate::TextOptions::default() });
    for said in [
        "ext4-vs-overlay, quick form: Does an overlay slow my application&#39;s start?",
        "Not as expected, in 1 of 2 points",
        "start: from the device, and from memory",
        "overlay is 11% slower than ext4, cold",
        "+27.7 ms: +27.6 newfstatat, +0.1 the rest",
        "left out: rails: rails is not installed",
        "nothing was measured",
        "371.6",
    ] {
        assert!(page.contains(said), "{said} in the page");
        assert!(text.contains(&said.replace("&#39;", "'")), "{said} in the text:\n{text}");
    }
    for (class, word, says) in [("good", "true", "it is slow"), ("warning", "FALSE", "it is very slow")] {
        let row = format!("<td class=\"{class}\">{word}</td><td class=\"said\">{says}");
        assert!(page.contains(&row), "{row}");
    }
    // Each case of a part links to all that is known about it, collapsed.
    assert_eq!(page.matches("<details class=\"of-case\">").count(), 4);
    for case in 0..4 {
        assert!(page.contains(&format!("href=\"#case-{case}\"")) && page.contains(&format!("id=\"case-{case}\"")));
    }
}

/// The page of a comparison scores the prediction, and contains the table of what was measured.
#[test]
fn a_page_says_what_the_text_says() {
    for recording in [sample::find_recording(), sample::overlay_recording(), sample::durable_recording()] {
        let mut recording = recording;
        inodyne_analyse::explain(&mut recording);
        let page = html(&recording);
        let text =
            crate::text(&recording, &crate::TextOptions { width: 200, verbose: true, ..crate::TextOptions::default() });
        for begin in ["  predicted without ", "Runs: "] {
            for line in text.lines().filter(|line| line.starts_with(begin)) {
                let words = [": true so far", ": true", ": missed", ": not decided"]
                    .iter()
                    .fold(line.trim(), |line, end| line.trim_end_matches(end));
                assert!(page.contains(words), "{words}");
            }
        }
    }
}

#[test]
fn every_case_has_its_section() {
    let page = page(sample::find_recording());
    assert_eq!(page.matches("<section class=\"case\"").count(), 4);
    assert_eq!(page.matches("data-kind=\"flame\"").count(), 4);
    assert!(page.contains("<a href=\"#case-3\">"), "contents");
    assert!(page.contains("dtype-missing"));
}

#[test]
fn a_page_of_settings_is_called_after_the_command() {
    let recording = sample::tuned_recording();
    let title = format!("Settings for {}", recording.tuning.as_ref().expect("a tuning").command);
    assert!(page(recording).matches(&title).count() >= 2, "in the window's title and above the page");
}

#[test]
fn no_time_is_drawn_as_predicted_where_something_speaks_against_predictions() {
    let mut recording = sample::find_recording();
    inodyne_analyse::explain(&mut recording);
    let drawn = |page: &str| ["class=\"predicted\"", "predicted if fixed"].map(|words| page.contains(words));
    assert_eq!(drawn(&html(&recording)), [true; 2]);
    for trace in &mut recording.traces {
        trace.doubts = vec!["The machine was busy.".to_owned()];
    }
    assert_eq!(drawn(&html(&recording)), [false; 2]);
}

#[test]
fn of_an_unknown_machine_nothing_is_said() {
    let page = page(Recording { host: Host::default(), ..sample::find_recording() });
    assert!(page.contains("<p class=\"dim\">2026-09-21 14:13 UTC · inodyne 0.1.0</p>"));
}
