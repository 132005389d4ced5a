//! Golden reports, and what must hold for every report.

use inodyne_model::recording::Recording;
use inodyne_model::sample;
use unicode_width::UnicodeWidthStr;

use super::*;

fn explained(mut recording: Recording) -> Recording {
    inodyne_analyse::explain(&mut recording);
    recording
}

fn at(recording: &Recording, width: usize) -> String {
    text(recording, &TextOptions { width, ..TextOptions::default() })
}

fn only(recording: &Recording, section: Section) -> String {
    text(recording, &TextOptions { section: Some(section), ..TextOptions::default() })
}

/// The report without its styles.
fn stripped(coloured: &str) -> String {
    let mut parts = coloured.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').expect("a style ends with m").1)
}

#[test]
fn find_at_80_columns() {
    insta::assert_snapshot!(at(&explained(sample::find_recording()), 80));
}

#[test]
fn find_at_160_columns() {
    insta::assert_snapshot!(at(&explained(sample::find_recording()), 160));
}

#[test]
fn pipeline_at_80_columns() {
    insta::assert_snapshot!(at(&explained(sample::pipeline_recording()), 80));
}

#[test]
fn pipeline_at_160_columns() {
    insta::assert_snapshot!(at(&explained(sample::pipeline_recording()), 160));
}

#[test]
fn the_tables_by_command_name_stand_alone() {
    insta::assert_snapshot!(only(&explained(sample::pipeline_recording()), Section::ByComm));
}

#[test]
fn nothing_is_said_about_nothing() {
    assert_eq!(at(&sample::empty(), 80), "");
}

#[test]
fn no_line_is_wider_than_the_report() {
    for recording in [explained(sample::find_recording()), explained(sample::pipeline_recording())] {
        for width in TextOptions::NARROWEST..200 {
            for line in at(&recording, width).lines() {
                assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
            }
        }
    }
}

#[test]
fn colours_change_nothing_but_the_colour() {
    for recording in [explained(sample::find_recording()), explained(sample::pipeline_recording())] {
        let plain = at(&recording, 100);
        let coloured = text(&recording, &TextOptions { width: 100, colour: true, section: None });
        assert!(!plain.contains('\x1b') && coloured.contains("\x1b["));
        assert_eq!(stripped(&coloured), plain);
    }
}

#[test]
fn a_section_is_a_part_of_the_whole() {
    let recording = explained(sample::find_recording());
    let whole = at(&recording, 80);
    for section in Section::ALL.into_iter().filter(|section| *section != Section::ByComm) {
        let part = only(&recording, section);
        assert!(part.lines().all(|line| whole.contains(line)), "{section}");
    }
}

#[test]
fn only_line_ends_of_all_control_characters() {
    let report = at(&explained(sample::pipeline_recording()), 160);
    assert!(report.chars().all(|c| c == '\n' || !c.is_control()));
    assert!(report.contains(r"\u{1b}[2J\u{202e}secret") && report.contains(r"evil\n\u{1b}[31mname"));
}

#[test]
fn json_is_the_recording() {
    let recording = explained(sample::find_recording());
    assert_eq!(serde_json::from_str::<Recording>(&crate::json(&recording)).unwrap(), recording);
}
