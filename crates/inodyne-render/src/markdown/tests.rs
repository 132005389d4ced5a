//! Golden reports in Markdown, and checks that no name in them is read as Markdown.

use inodyne_model::files::{FileUse, Files};
use inodyne_model::recording::Recording;
use inodyne_model::sample;
use inodyne_model::trace::{PathCount, Paths};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::*;
use crate::text::tests::section;

fn explained(mut recording: Recording) -> Recording {
    inodyne_analyse::explain(&mut recording);
    recording
}

#[test]
fn golden_reports() {
    for (name, recording) in [
        ("find", sample::find_recording()),
        ("pipeline", sample::pipeline_recording()),
        ("commands", sample::commands_recording()),
        ("durable", sample::durable_recording()),
    ] {
        insta::assert_snapshot!(name, markdown(&explained(recording), None));
    }
}

#[test]
fn a_golden_comparison() {
    insta::assert_snapshot!(markdown(&explained(sample::overlay_recording()), Some(section("comparison"))));
}

/// What a reader of Markdown makes of a report.
#[derive(Debug, Default)]
struct Read {
    /// How many columns the headings of every table have, and each of its rows.
    tables: Vec<(usize, Vec<usize>)>,
    /// Everything that is shown.
    text: String,
    html: Vec<String>,
    links: usize,
}

fn read(markdown: &str) -> Read {
    let mut found = Read::default();
    let mut cells = 0;
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH | Options::ENABLE_GFM;
    for event in Parser::new_ext(markdown, options | Options::ENABLE_FOOTNOTES | Options::ENABLE_TASKLISTS) {
        match event {
            Event::Start(Tag::Table(columns)) => found.tables.push((columns.len(), Vec::new())),
            Event::Start(Tag::TableHead | Tag::TableRow) => cells = 0,
            Event::Start(Tag::TableCell) => cells += 1,
            Event::End(TagEnd::TableHead | TagEnd::TableRow) => {
                found.tables.last_mut().expect("a row is in a table").1.push(cells);
            }
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::FootnoteDefinition(_)) => found.links += 1,
            Event::FootnoteReference(_) | Event::TaskListMarker(_) => found.links += 1,
            Event::InlineMath(text) | Event::DisplayMath(text) => panic!("math: {text}"),
            Event::Html(text) | Event::InlineHtml(text) => found.html.push(text.trim().to_owned()),
            Event::Text(text) | Event::Code(text) => found.text.push_str(&text),
            Event::SoftBreak | Event::HardBreak | Event::End(_) => found.text.push('\n'),
            _ => {}
        }
    }
    found
}

const HOSTILE: [&str; 14] = [
    "a|b|c",
    "`tick` ``two``",
    "<script>alert(1)</script>",
    "</details><img src=x onerror=y>",
    "line\nbreak\r\n| x | y |\n|---|---|",
    "\u{202e}right to left\u{200f}",
    "not\u{fffd}text",
    "[link](http://x.y) ![i](z) [^1]",
    "@everyone see #1",
    "**bold** _under_ ~~gone~~",
    r"back\|slash\",
    "$x$ $$y$$",
    "- [ ] task",
    "",
];

/// The sample recordings with a name in every place where a name from outside can appear.
fn with_name(name: &str) -> [Recording; 3] {
    let mut all = [sample::find_recording(), sample::overlay_recording(), sample::commands_recording()];
    for recording in &mut all {
        for (at, place) in recording.places.iter_mut().enumerate() {
            place.label = format!("{name}{at}");
            place.mkfs = vec![name.to_owned()];
            place.data = Some(name.to_owned());
            place.settings.insert(name.to_owned(), name.to_owned());
        }
        for command in &mut recording.commands {
            (command.label, command.argv) = (format!("{name} {}", command.label), vec![name.into()]);
        }
        for trace in &mut recording.traces {
            for thread in &mut trace.observed.threads {
                thread.comm = name.to_owned();
            }
            for comm in &mut trace.by_comm {
                comm.comm = name.to_owned();
                comm.syscalls[0].name = name.to_owned();
            }
            for directory in &mut trace.dtype.directories {
                directory.path = format!("/{name}");
            }
            let path = PathCount {
                path: name.to_owned(),
                syscall: name.to_owned(),
                calls: 1,
                not_found: 0,
                wall_ns: sample::ms(1.0),
            };
            trace.paths = Some(Paths { looked_up: vec![path], not_kept: 0 });
            let file = FileUse { path: name.to_owned(), comm: name.to_owned(), reads: 1, ..FileUse::default() };
            trace.files = Some(Files { used: vec![file], not_kept: 0 });
        }
    }
    all
}

#[test]
fn names_are_text_and_every_row_has_as_many_cells_as_its_heading() {
    for name in HOSTILE {
        for recording in with_name(name).map(explained) {
            for section in [None, Some(section("by-comm"))] {
                let markdown = markdown(&recording, section);
                if section.is_some() && recording.traces.is_empty() {
                    assert_eq!(markdown, "");
                    continue;
                }
                let read = read(&markdown);
                assert!(!read.tables.is_empty(), "{name:?}: no table\n{markdown}");
                for (columns, rows) in &read.tables {
                    assert!(rows.iter().all(|cells| cells == columns), "{name:?}: {columns} {rows:?}\n{markdown}");
                }
                // As many delimiter rows as there would be without the name: the name makes no table of its own.
                let pipes = markdown.lines().filter(|line| line.starts_with("| :--") || line.starts_with("| --:"));
                assert_eq!(pipes.count(), read.tables.len(), "{name:?}\n{markdown}");
                for html in &read.html {
                    let ours = ["<details>", "</details>", "<!-- -->"].contains(&html.as_str())
                        || html.starts_with("<summary>")
                            && html.matches('<').count() - html.matches("<!--").count() == 2;
                    assert!(ours, "{name:?}: {html}\n{markdown}");
                }
                assert_eq!(read.links, 0, "{name:?}\n{markdown}");
                let shown = crate::line::escaped(name);
                assert!(read.text.contains(shown.trim()), "{name:?} is not shown\n{markdown}\n{}", read.text);
            }
        }
    }
}

#[test]
fn sections_stand_alone() {
    let recording = explained(sample::find_recording());
    for section in Section::all() {
        let part = markdown(&recording, Some(section));
        assert!(!part.starts_with('\n') && !part.contains("\n\n\n"), "{section}:\n{part}");
        assert_eq!(part.matches("<details>").count(), part.matches("</details>").count(), "{section}");
    }
    assert_eq!(markdown(&sample::empty(), None), "");
}
