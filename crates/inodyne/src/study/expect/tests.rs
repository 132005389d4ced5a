//! Expectations over hand-made recordings, and over studies that cannot meet them.

use std::collections::BTreeSet;

use inodyne_model::sample;
use inodyne_model::study::{Compare, Part as Begun, Study};
use serde_json::json;

use super::*;
use crate::study::file::{self, Form};
use crate::study::plan::{Plan, Surroundings};

/// Two places, one command, cold and warm, as in the recording of [`overlay`].
const STUDY: &str = r#"
title = "overlay"
[[place]]
name = "ext4"
at = "ext4"
[[place]]
name = "overlay"
at = "overlay"
[[part]]
name = "start"
places = ["ext4", "overlay"]
caches = ["cold", "warm"]
commands = [{ name = "python manage.py check", run = "true" }]
"#;

/// What is wrong with an expectation, in a line; nothing where it can hold.
fn planned(study: &str, expect: &str) -> Result<Vec<Expected>, String> {
    let file = file::read(&format!("{study}\n[[expect]]\n{expect}")).map_err(|mistake| format!("{mistake:?}"))?;
    let surroundings = Surroundings { beside: None, cache: std::path::Path::new("/cache") };
    let plan = Plan::new(&file, Form::Full, &surroundings);
    plan.map(|plan| plan.expectations).map_err(|mistakes| format!("{mistakes:?}"))
}

/// The sample of an overlay, as a study's result.
fn overlay() -> Recording {
    let mut recording = sample::overlay_recording();
    let part = Begun {
        name: "start".to_owned(),
        places: vec![0, 1],
        commands: vec![0],
        compare: Compare::Places,
        ..Begun::default()
    };
    recording.study = Some(Study { name: "overlay".to_owned(), parts: vec![part], ..Study::default() });
    inodyne_analyse::explain(&mut recording);
    recording
}

fn looked(expect: &str) -> (bool, String) {
    let expected = planned(STUDY, expect).unwrap();
    let found = expected[0].look(&overlay());
    (found.held, found.seen)
}

#[test]
fn what_is_so_holds_and_what_is_not_does_not() {
    let cold = "b.place=overlay, cache=cold, metric=wall";
    let warm = "b.place=overlay, cache=warm, metric=wall";
    for (expect, held, seen) in [
        (format!("what = 'comparisons[{cold}].verdict'\nis = 'slower'"), true, "slower"),
        (format!("what = 'comparisons[{cold}].verdict'\nis = ['faster', 'slower']"), true, "slower"),
        (format!("what = 'comparisons[{cold}].verdict'\nis = 'faster'"), false, "slower"),
        (format!("what = 'comparisons[{warm}].verdict'\nis = 'no-difference'"), true, "no-difference"),
        (format!("what = 'comparisons[{cold}].pairs'\nmin = 50\nmax = 50"), true, "50"),
        (format!("what = 'comparisons[{cold}].pairs'\nmin = 51"), false, "50"),
        ("what = 'statistics'\nmin = 4\nmax = 4".to_owned(), true, "4"),
        ("what = 'statistics.trend'\nmax = 0".to_owned(), true, "0"),
        ("what = 'statistics[place=ext4, cache=cold].wall.n'\nmin = 50".to_owned(), true, "50"),
        ("what = 'runs[place=ext4, traced=true]'\nmin = 16\nmax = 16".to_owned(), true, "16"),
        ("what = 'findings[id=futex-contention]'\nmin = 1".to_owned(), false, "0"),
        ("what = 'traces[cache=cold].syscalls[name=getrandom].calls'\nmin = 1".to_owned(), false, "nothing"),
        (
            "what = 'traces.syscalls[name=newfstata].calls'\nper = 'traces.dtype.entries'\nmax = 1".to_owned(),
            false,
            "nothing",
        ),
        ("what = 'findings[id=futex-contention]'\nper = 'traces'\nmax = 1".to_owned(), true, "0"),
        (
            "what = 'traces[place=overlay].dtype.entries'\nper = 'traces[place=ext4].dtype.entries'\nmin = 1\nmax = 1"
                .to_owned(),
            true,
            "1",
        ),
        ("what = 'traces'\nper = 'traces[place=ext4]'\nmin = 2\nmax = 2".to_owned(), true, "2"),
    ] {
        assert_eq!(looked(&expect), (held, seen.to_owned()), "{expect}");
    }
}

#[test]
fn every_value_must_hold_and_many_are_told_in_short() {
    let (held, seen) = looked("what = 'runs[place=ext4, cache=cold, traced=false].wall_ns'\nmin = 1");
    assert!(held && seen.starts_with("50 values from "), "{seen}");
    assert!(!looked("what = 'runs[place=ext4, cache=cold, traced=false].wall_ns'\nmax = 360000000").0);
}

#[test]
fn a_ratio_is_that_of_the_means_over_as_many() {
    let (held, seen) = looked(
        "what = 'traces[place=overlay, cache=cold].syscalls[name=newfstatat].wall_ns'\n\
         per = 'traces[place=ext4, cache=cold].syscalls[name=newfstatat].wall_ns'\nmin = 1.05\nmax = 1.5",
    );
    assert!(held, "{seen}");
}

/// Of 50 runs one that somebody else disturbed is no matter, where the median is asked for.
#[test]
fn a_median_does_not_mind_what_few_runs_saw() {
    let read = "[place=ext4, cache=cold, traced=false].device_read_bytes";
    let look = |recording: &Recording, expect: &str| {
        let found = planned(STUDY, expect).unwrap()[0].look(recording);
        (found.held, found.seen)
    };
    let per = "per = 'runs[place=overlay, cache=cold, traced=false].device_read_bytes'";
    let alone = format!("what = 'runs{read}'\ntake = 'median'\nmin = 12300000\nmax = 12300000");
    let ratio = format!("what = 'runs{read}'\n{per}\ntake = 'median'\nmin = 1\nmax = 1");
    let mut recording = overlay();
    for expect in [&alone, &ratio] {
        assert!(look(&recording, expect).0, "{:?}", look(&recording, expect));
    }
    recording.runs.iter_mut().find(|run| !run.traced).unwrap().device_read_bytes = Some(99_000_000_000);
    for expect in [&alone, &ratio] {
        assert!(look(&recording, expect).0, "{:?}", look(&recording, expect));
        assert!(!look(&recording, &expect.replace("take = 'median'\n", "")).0);
    }
    let empty = "what = 'traces.syscalls[name=absent].calls'\ntake = 'median'\nmax = 1";
    assert_eq!(look(&recording, empty), (false, "nothing".to_owned()));
}

#[test]
fn what_can_never_hold_is_a_mistake() {
    for (expect, says) in [
        ("what = 'comparisons[b.place=xfs].ratio'\nmin = 1", "no comparisons have b.place=xfs: there are overlay"),
        ("what = 'comparisons[b.place=ext4].ratio'\nmin = 1", "no comparisons have b.place=ext4"),
        ("what = 'traces[command=find].wall_ns'\nmin = 1", "no traces have command=find"),
        ("what = 'traces[cache=as-is].wall_ns'\nmin = 1", "no traces have cache=as-is: there are cold, warm"),
        ("what = 'traces[part=end].wall_ns'\nmin = 1", "no traces have part=end"),
        ("what = 'findings[id=slowness]'\nmin = 1", "no id 'slowness'"),
        ("what = 'comparisons[metric=walls].ratio'\nmin = 1", "no metric 'walls'"),
        ("what = 'traces.ledger.rows[cause=boredom].ns'\nmin = 1", "no cause 'boredom'"),
        ("what = 'places.label'\nmin = 1", "'places' is not a list of a recording"),
        ("what = 'runs.wall'\nmin = 1", "no runs.wall: there are runs.wall_ns"),
        ("what = 'runs[name=x].wall_ns'\nmin = 1", "taken by 'name'"),
        ("what = 'runs.wall_ns[name=x]'\nmin = 1", "takes no [name"),
        ("what = 'runs[place].wall_ns'\nmin = 1", "is not a selector"),
        ("what = 'runs.wall_ns'", "min or max"),
        ("what = 'runs.wall_ns'\nmin = 2\nmax = 1", "no number is 2 or more and 1 or less"),
        ("what = 'runs.wall_ns'\nmin = nan", "finite"),
        ("what = 'runs'\nmax = -1", "less than none"),
        ("what = 'runs.wall_ns'\nis = 'faster'", "this is a number"),
        ("what = 'comparisons.verdict'", "this is a word"),
        ("what = 'comparisons.verdict'\nis = 'fast'", "'fast' is not a verdict"),
        ("what = 'comparisons.verdict'\nis = []", "no words"),
        ("what = 'comparisons.verdict'\nis = 'faster'\nmin = 1", "it has no min"),
        ("what = 'runs.wall_ns'\nper = 'comparisons.verdict'\nmin = 1", "only numbers"),
        ("what = 'runs'\ntake = 'median'\nmin = 1", "only numbers have a median"),
        ("what = 'runs.wall_ns'\nper = 'runs'\ntake = 'median'\nmin = 1", "only numbers have a median"),
    ] {
        let wrong = planned(STUDY, expect).map(|_| ()).unwrap_err();
        assert!(wrong.contains(says), "{expect}: {wrong}");
    }
    let untraced = STUDY.replace("[[part]]", "[[part]]\ntraced = 0");
    assert!(planned(&untraced, "what = 'findings'\nmax = 0").unwrap_err().contains("no traced runs"));
    let twice = STUDY.replace("[[part]]", "[[part]]\ntraced = 2");
    for of_calls in [
        "what = 'comparisons[metric=syscall:read:wall].ratio'\nmin = 1",
        "what = 'comparisons[metric=ledger:user].ratio'\nmin = 1",
        "what = 'statistics.calls[name=read].wall.median_ns'\nmin = 1",
    ] {
        assert!(planned(STUDY, of_calls).unwrap_err().contains("traced = 2 or more"), "{of_calls}");
        planned(&twice, of_calls).unwrap();
    }
    assert!(planned(STUDY, "what = 'comparisons[metric=durable].ratio'\nmin = 1").unwrap_err().contains("to durable"));
    let alone = STUDY.replace("places = [\"ext4\", \"overlay\"]", "places = [\"ext4\"]");
    assert!(planned(&alone, "what = 'comparisons.ratio'\nmin = 0").unwrap_err().contains("nothing to compare"));
    let by_command = STUDY.replace("[[part]]", "[[part]]\ncompare = \"commands\"");
    assert!(planned(&by_command, "what = 'comparisons.ratio'\nmin = 0").is_err());
}

#[test]
fn what_is_about_a_command_that_is_not_here_or_compared_with_it_is_not_checked() {
    let study = r#"
title = "commands"
[[place]]
name = "ext4"
at = "ext4"
[[part]]
name = "base"
places = ["ext4"]
commands = [
    { name = "first", run = "true", if_found = "absent" },
    { name = "second", run = "true" },
    { name = "third", run = "true" },
]
[[part]]
name = "other"
places = ["ext4"]
commands = [{ name = "second", run = "true", if_found = "absent" }, { name = "fourth", run = "true" }]
"#;
    for (expect, is_checked) in [
        ("what = 'runs.wall_ns'\nmin = 1", true),
        ("what = 'runs[command=second].wall_ns'\nmin = 1", true),
        ("what = 'runs[command=first].wall_ns'\nmin = 1", false),
        ("what = 'runs[part=other, command=second].wall_ns'\nmin = 1", false),
        // The others are compared with the first, and without it with the second.
        ("what = 'comparisons[part=base, b.command=third, metric=wall].verdict'\nis = 'faster'", false),
        ("what = 'comparisons[part=other, metric=wall].verdict'\nis = 'faster'", false),
        // What is divided by may be about another part.
        ("what = 'runs[part=base].wall_ns'\nper = 'runs[part=other, command=second].wall_ns'\nmax = 1", false),
        ("what = 'runs[part=other].wall_ns'\nper = 'runs[part=base, command=second].wall_ns'\nmax = 1", true),
    ] {
        let file = file::read(&format!("{study}\n[[expect]]\n{expect}")).unwrap();
        let surroundings = Surroundings { beside: None, cache: std::path::Path::new("/cache") };
        let plan = Plan::new(&file, Form::Full, &surroundings).unwrap();
        let seen = plan.expectations[0].can_be_seen(&plan.parts, |command| command.if_found.is_none());
        assert_eq!(seen, is_checked, "{expect}");
    }
}

/// Every number that an expectation can name is somewhere in the JSON of a recording.
#[test]
fn the_fields_are_those_of_recordings() {
    let mut all = BTreeSet::new();
    for mut recording in [sample::overlay_recording(), sample::commands_recording(), sample::find_recording()] {
        inodyne_analyse::explain(&mut recording);
        for (name, root) in Root::ALL {
            for next in ["syscalls", "ledger", "dtype", "wall_ns"] {
                for element in element::all(&recording, root, Some(next)) {
                    names(&json!({ name: element.value }), String::new(), &mut all);
                }
            }
        }
    }
    // What the samples do not have is left out of their JSON.
    let optional = ["avoidable_calls", "bytes", "device_read_bytes", "device_write_bytes"];
    let unseen = |field: &String| !all.contains(field) && !optional.iter().any(|optional| field.ends_with(optional));
    let missing: Vec<String> =
        fields::numbers().filter(unseen).filter(|f| !f.starts_with("statistics.modes")).collect();
    let change = missing.iter().filter(|field| !field.starts_with("statistics.change_point")).collect::<Vec<_>>();
    assert!(change.is_empty(), "{change:?}");
}

fn names(value: &Value, path: String, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                names(value, path, all);
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| names(element, path.clone(), all)),
        _ => drop(all.insert(path)),
    }
}

/// Twenty unpackings as the home server of 2002 had them on ext2, from 3.7 to 6.6 s, with noise of 5%; in this order.
fn unpackings(order: &[u32]) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext2", &[])];
    recording.commands = vec![sample::command("unpack")];
    let mut noise = inodyne_model::random::Random::seeded(2002);
    for (block, step) in (0..).zip(order) {
        let wall = sample::ms((3_700.0 + 2_900.0 / 19.0 * f64::from(*step)) * (noise.normal() * 0.05).exp());
        let run = sample::run(0, inodyne_model::run::CacheState::AsIs, false, wall);
        recording.push_run(inodyne_model::run::Run { block, ..run });
    }
    let part = Begun { name: "unpack".to_owned(), places: vec![0], commands: vec![0], ..Begun::default() };
    recording.study = Some(Study { parts: vec![part], ..Study::default() });
    inodyne_analyse::explain(&mut recording);
    recording
}

#[test]
fn twenty_unpackings_have_a_trend_in_their_order_and_none_in_another() {
    let study = "title = 'home'\n[[place]]\nname = 'ext2'\nat = 'ext2'\n[[part]]\nname = 'unpack'\nplaces = ['ext2']\n\
                 traced = 0\ncommands = [{ name = 'unpack', run = 'true' }]";
    let rises = planned(study, "what = 'statistics[place=ext2].trend.change'\nmin = 0.3\nmax = 0.9").unwrap();
    let stays = planned(study, "what = 'statistics[place=ext2].trend'\nmax = 0").unwrap();
    let mut order: Vec<u32> = (0..20).collect();
    let in_order = unpackings(&order);
    assert!(rises[0].look(&in_order).held, "{:?}", rises[0].look(&in_order));
    assert!(!stays[0].look(&in_order).held);
    let mut random = inodyne_model::random::Random::seeded(9);
    let still = (0..100).filter(|_| {
        random.shuffle(&mut order);
        !stays[0].look(&unpackings(&order)).held
    });
    let still = still.count();
    assert!(still <= 5, "{still} of 100 shuffled ones have a trend");
}
