//! Golden reports, and what must hold for every report.

use inodyne_model::files::{FileUse, Files};
use inodyne_model::recording::Recording;
use inodyne_model::run::Exit;
use inodyne_model::sample;
use inodyne_model::study::{Compare, Expectation, Part, Study};
use inodyne_model::trace::{PathCount, Paths};
use inodyne_model::tuning::{Measured, Objective};
use unicode_width::UnicodeWidthStr;

use super::*;

pub(crate) fn explained(mut recording: Recording) -> Recording {
    inodyne_analyse::explain(&mut recording);
    recording
}

/// The section of this name.
pub(crate) fn section(name: &str) -> Section {
    name.parse().expect("such a section")
}

fn at(recording: &Recording, width: usize) -> String {
    text(recording, &TextOptions { width, verbose: true, ..TextOptions::default() })
}

fn only(recording: &Recording, section: Section) -> String {
    text(recording, &TextOptions { section: Some(section), ..TextOptions::default() })
}

fn first_screen(recording: &Recording, width: usize) -> String {
    text(recording, &TextOptions { width, ..TextOptions::default() })
}

/// The report without its styles.
fn stripped(coloured: &str) -> String {
    let mut parts = coloured.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').expect("a style ends with m").1)
}

#[test]
fn golden_reports() {
    let samples = [
        ("find", sample::find_recording()),
        ("pipeline", sample::pipeline_recording()),
        ("window", sample::window_recording()),
    ];
    for (name, recording) in samples {
        let recording = explained(recording);
        for width in [80, 160] {
            insta::assert_snapshot!(format!("{name}_{width}"), at(&recording, width));
        }
    }
}

/// Every sample, and what makes a screen long: one case of many, doubts, losses, a signal, times of runs that are far apart.
fn screens() -> Vec<(&'static str, Recording)> {
    let mut one_case = sample::find_recording();
    one_case.traces.truncate(1);
    let key = one_case.traces[0].key();
    one_case.runs.retain(|run| run.key() == key);
    let mut doubtful = one_case.clone();
    doubtful.traces[0].lost.intervals = 12;
    doubtful.traces[0].lost.skipped = 1_008;
    doubtful.traces[0].skipped = [("block_rq_merge".to_owned(), 8), ("task_rename".to_owned(), 1_000)].into();
    doubtful.traces[0].overhead.ratio = 2.5;
    doubtful.runs.iter_mut().for_each(|run| run.exit = Exit::Signal(9));
    let mut untraced = one_case.clone();
    untraced.traces.clear();
    let samples = [
        ("find", sample::find_recording()),
        ("one", one_case),
        ("doubtful", doubtful),
        ("untraced", untraced),
        ("pipeline", sample::pipeline_recording()),
        ("overlay", sample::overlay_recording()),
        ("commands", sample::commands_recording()),
        ("durable", sample::durable_recording()),
        ("window", sample::window_recording()),
    ];
    samples.map(|(name, recording)| (name, explained(recording))).into()
}

#[test]
fn golden_first_screens() {
    let all: Vec<String> =
        screens().iter().map(|(name, recording)| format!("== {name} ==\n{}", first_screen(recording, 80))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_first_screen_has_24_lines_of_80_columns_at_most() {
    for (name, recording) in screens() {
        let screen = first_screen(&recording, 80);
        assert!(screen.lines().count() <= TextOptions::SCREEN, "{name}:\n{screen}");
        assert!(screen.lines().all(|line| line.width() <= 80), "{name}:\n{screen}");
    }
}

#[test]
fn a_first_screen_keeps_every_doubt() {
    let (_, recording) = screens().into_iter().find(|(name, _)| *name == "doubtful").unwrap();
    let screen = first_screen(&recording, 80);
    for said in ["LOST: 12", "skipped at block_rq_merge (8), task_rename (1,000)", "killed by signal 9"] {
        assert!(screen.contains(said), "{said}:\n{screen}");
    }
}

#[test]
fn golden_comparisons() {
    for (name, recording) in [
        ("overlay", sample::overlay_recording()),
        ("commands", sample::commands_recording()),
        ("durable", sample::durable_recording()),
    ] {
        let recording = explained(recording);
        for width in [80, 160] {
            let options = |section| TextOptions { width, section: Some(section), ..TextOptions::default() };
            let comparison = text(&recording, &options(section("comparison")));
            let runs = text(&recording, &options(section("runs")));
            insta::assert_snapshot!(format!("{name}_{width}"), format!("{comparison}\n{runs}"));
        }
    }
}

/// The sample of an overlay as a study in two parts, with one expectation that does not hold.
pub(crate) fn study() -> Recording {
    let mut recording = sample::overlay_recording();
    recording.traces.iter_mut().for_each(sample::add_block_io);
    let expectation = |says: &str, held| Expectation {
        says: says.to_owned(),
        what: "traces[place=ext4].wall_ns".to_owned(),
        expected: "5 or more".to_owned(),
        seen: if held { "7" } else { "3" }.to_owned(),
        held,
    };
    recording.study = Some(Study {
        name: "ext4-vs-overlay".to_owned(),
        title: "Does an overlay slow my application's start?".to_owned(),
        about: "The same application starts on ext4 and on an overlay over it.".to_owned(),
        quick: true,
        parts: vec![
            Part {
                name: "start".to_owned(),
                title: "from the device, and from memory".to_owned(),
                places: vec![0, 1],
                commands: vec![0],
                compare: Compare::Places,
                left_out: vec!["rails: rails is not installed".to_owned()],
            },
            Part { name: "end".to_owned(), ..Part::default() },
        ],
        expectations: vec![expectation("it is slow", true), expectation("it is very slow", false)],
    });
    explained(recording)
}

#[test]
fn golden_studies() {
    for width in [80, 160] {
        insta::assert_snapshot!(format!("study_{width}"), at(&study(), width));
    }
    // Everything else is there for those who ask.
    assert!(only(&study(), section("ledger")).contains("Where the time went"));
}

#[test]
fn golden_tunings() {
    let recording = explained(sample::tuned_recording());
    insta::assert_snapshot!("tuning_screen", crate::text(&recording, &TextOptions::default()));
    let whole = at(&recording, 100);
    assert!(whole.contains("inode_readahead_blks=256 helps") && !whole.contains("no difference"), "{whole}");
    // The runs are there for those who ask.
    assert!(only(&recording, section("runs")).contains("noatime"));
    let mut nothing = recording;
    nothing.tuning.iter_mut().for_each(|tuning| {
        tuning.best = None;
        tuning.tried.retain(|tried| tried.confirmed.is_none());
        tuning.complete = false;
    });
    let told = crate::text(&nothing, &TextOptions::default());
    // One looked better, and was passed over.
    let open =
        "No setting was shown to help by 2% or more; 1 that looked better was not tried on fresh runs. It ended early";
    assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(open), "{told}");
    assert!(!told.contains("What to write where"), "{told}");
}

#[test]
fn a_tuning_for_a_number_shows_numbers() {
    let mut recording = explained(sample::tuned_recording());
    let tuning = recording.tuning.as_mut().expect("it is one");
    tuning.objective = Objective::Highest;
    let confirmed = tuning.tried[0].confirmed.as_mut().expect("it was confirmed");
    *confirmed = Measured {
        base_number: Some(1_204.0),
        number: Some(1_505.0),
        ratio: 0.8,
        ci_low: Some(0.78),
        ci_high: Some(0.82),
        ..*confirmed
    };
    let told = crate::text(&recording, &TextOptions::default());
    assert!(told.starts_with("find . -size +1k on slow=ext4:delay=3ms (cold): 1,204\n"), "{told}");
    assert!(told.contains("helps: 1,505 instead of 1,204, +25% [+22%, +28%]"), "{told}");
    let row = told.lines().find(|line| line.trim_start().starts_with("inode_readahead_blks=256 (")).expect(&told);
    assert!(row.contains("+25%") && row.contains("[+22%, +28%]"), "{told}");
}

#[test]
fn a_comparison_begins_with_its_verdict_and_nothing_of_it_is_cut() {
    let lines = |width| {
        let text = at(&explained(sample::overlay_recording()), width);
        text.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let narrow = lines(80);
    assert_eq!(narrow[0], "overlay is 11% slower than ext4, cold");
    assert!(narrow[1].contains("[+10%, +12%]") && narrow[1].contains("50 pairs"), "{narrow:?}");
    let wide = &lines(160)[0];
    assert!(wide.starts_with(&narrow[0]) && wide.contains("50 pairs"), "{wide}");
}

#[test]
fn the_time_to_durable_stands_beside_the_time_to_exit() {
    let report = at(&explained(sample::durable_recording()), 120);
    let begin: Vec<&str> = report.lines().take(2).collect();
    assert!(begin[0].starts_with("no difference of 2% or more between xfs and ext4, to exit"), "{begin:?}");
    assert!(begin[1].starts_with("xfs is ") && begin[1].contains("% slower than ext4, to durable"), "{begin:?}");
    for said in [" s to exit, ", " s to durable\n", "! ext4: to durable, a trend: every run takes"] {
        assert!(report.contains(said), "{said}:\n{report}");
    }
    // Without it, none of this is said.
    assert!(!at(&explained(sample::overlay_recording()), 120).contains("to exit"));
}

#[test]
fn the_tables_by_command_name_stand_alone() {
    insta::assert_snapshot!(only(&explained(sample::pipeline_recording()), section("by-comm")));
}

#[test]
fn requests_to_block_devices_are_shown_by_disk_and_path() {
    let mut recording = sample::find_recording();
    sample::add_block_io(&mut recording.traces[0]);
    insta::assert_snapshot!(only(&explained(recording), section("block")));
}

#[test]
fn journals_are_shown_with_the_phases_of_their_commits() {
    let mut recording = sample::find_recording();
    sample::add_block_io(&mut recording.traces[0]);
    insta::assert_snapshot!(only(&explained(recording), section("journals")));
}

#[test]
fn the_page_cache_is_shown_with_what_was_read_ahead_in_vain() {
    let mut recording = sample::find_recording();
    sample::add_page_cache(&mut recording.traces[0]);
    insta::assert_snapshot!(only(&explained(recording), section("page-cache")));
}

#[test]
fn paths_are_shown_by_time_and_by_directory() {
    let mut recording = explained(sample::find_recording());
    let path = |path: &str, calls, not_found, ms| PathCount {
        path: path.to_owned(),
        syscall: "openat".to_owned(),
        calls,
        not_found,
        wall_ns: sample::ms(ms),
    };
    let looked_up = vec![
        path("/usr/lib/a/libz.so", 3_000, 3_000, 9.0),
        path("/usr/lib/b/libz.so", 3_000, 0, 12.0),
        path("/etc", 7, 0, 0.02),
        path("evil\n\u{1b}[31mname", 40, 40, 0.1),
        path("d/", 2, 0, 0.1),
    ];
    recording.traces[0].paths = Some(Paths { looked_up, not_kept: 1_234 });
    insta::assert_snapshot!(only(&recording, section("paths")));
}

#[test]
fn files_are_shown_by_time_by_directory_and_where_they_were_read_again() {
    let mut recording = explained(sample::find_recording());
    let file = |path: &str, comm: &str, ms| FileUse {
        path: path.to_owned(),
        comm: comm.to_owned(),
        opens: 1,
        wall_ns: sample::ms(ms),
        ..FileUse::default()
    };
    let read = |times: u64, of: FileUse| FileUse { reads: 10 * times, read_bytes: 40_000 * times, size: 40_000, ..of };
    let written = |of: FileUse| FileUse { writes: 3, written_bytes: 12_345, syncs: 1, size: 12_345, ..of };
    let used = vec![
        read(5, file("/srv/data/db", "sqlite3", 12.0)),
        read(1, file("/srv/data/db", "cp", 3.0)),
        read(1, file("/usr/lib/libc.so.6", "cp", 0.5)),
        written(file("/srv/data/copy", "cp", 9.0)),
        FileUse { is_directory: true, lists: 2, ..file("/srv", "ls", 0.2) },
        read(1, file("…/deep/evil\n\u{1b}[31mname", "cat", 0.1)),
    ];
    recording.traces[0].files = Some(Files { used, not_kept: 17 });
    insta::assert_snapshot!(only(&recording, section("files")));
}

#[test]
fn nothing_is_said_about_nothing() {
    assert_eq!(at(&sample::empty(), 80), "");
}

#[test]
fn no_line_is_wider_than_the_report() {
    let recordings = [
        sample::find_recording,
        sample::pipeline_recording,
        sample::overlay_recording,
        sample::commands_recording,
        sample::durable_recording,
    ];
    for recording in recordings.map(|recording| explained(recording())) {
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
        let coloured =
            text(&recording, &TextOptions { width: 100, colour: true, verbose: true, ..TextOptions::default() });
        assert!(!plain.contains('\x1b') && coloured.contains("\x1b["));
        assert_eq!(stripped(&coloured), plain);
    }
}

#[test]
fn a_section_is_a_part_of_the_whole() {
    let recording = explained(sample::find_recording());
    let whole = at(&recording, 80);
    for section in Section::all().filter(|section| section.as_str() != "by-comm") {
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

/// The recording with every integer of its JSON replaced.
fn with_every_number(recording: &Recording, number: u64) -> Recording {
    fn replace(value: &mut serde_json::Value, number: u64) {
        match value {
            serde_json::Value::Number(old) if old.is_u64() => *old = number.into(),
            serde_json::Value::Array(values) => values.iter_mut().for_each(|value| replace(value, number)),
            serde_json::Value::Object(map) => map.values_mut().for_each(|value| replace(value, number)),
            _ => {}
        }
    }
    let mut json = serde_json::to_value(recording).unwrap();
    replace(&mut json["traces"], number);
    for (at, trace) in json["traces"].as_array_mut().unwrap().iter_mut().enumerate() {
        (trace["place"], trace["command"]) = ((at % 2).into(), 0.into());
    }
    serde_json::from_value(json).unwrap()
}

#[test]
fn nonsense_is_shown_without_a_panic() {
    for number in [0, 1, u64::from(u32::MAX)] {
        let recording = explained(with_every_number(&sample::find_recording(), number));
        for width in [0, 80, 160] {
            assert!(!at(&recording, width).is_empty());
        }
        in_all_formats(&recording);
    }
    let mut recording = sample::find_recording();
    for trace in &mut recording.traces {
        (trace.place, trace.command, trace.wall_ns) = (9, 9, inodyne_model::Nanos(u64::MAX));
        trace.overhead.ratio = f64::NAN;
        trace.by_comm[0].syscalls[0].wall_ns = trace.wall_ns;
        trace.by_comm[0].syscalls[0].calls = u64::MAX;
    }
    let recording = explained(recording);
    assert!(!at(&recording, 80).is_empty());
    in_all_formats(&recording);
}

fn in_all_formats(recording: &Recording) {
    assert!(!crate::markdown(recording, None).is_empty() && !crate::hyperfine(recording).is_empty());
    for section in Section::all() {
        let columns = |line: &str| line.matches(',').count();
        let table = crate::csv(recording, section);
        assert!(table.lines().all(|line| columns(line) >= columns(&table[..table.find('\n').unwrap()])), "{section}");
    }
}

#[test]
fn json_is_the_recording() {
    let recording = explained(sample::find_recording());
    let mut json = Vec::new();
    crate::json(&recording, &mut json).unwrap();
    assert_eq!(serde_json::from_slice::<Recording>(&json).unwrap(), recording);
}
