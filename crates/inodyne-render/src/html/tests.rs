//! What must hold for every page, without a browser; `tests/browser` looks at it in one.

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

#[test]
fn every_case_has_its_section() {
    let page = page(sample::find_recording());
    assert_eq!(page.matches("<section class=\"case\"").count(), 4);
    assert_eq!(page.matches("data-kind=\"flame\"").count(), 4);
    assert!(page.contains("<a href=\"#case-3\">"), "contents");
    assert!(page.contains("dtype-missing"));
}
