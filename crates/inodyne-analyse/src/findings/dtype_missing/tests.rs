//! Where the finding is made and where not.

use inodyne_model::case::CaseKey;
use inodyne_model::finding::Prediction;
use inodyne_model::recording::Recording;
use inodyne_model::run::median;
use inodyne_model::sample;
use inodyne_model::trace::ForcedLookup;

use super::*;

/// What other diagnoses say of the same trace is none of these tests' business.
fn explained(mut recording: Recording) -> Recording {
    crate::explain(&mut recording);
    recording.findings.retain(|finding| finding.id == "dtype-missing");
    recording
}

/// A trace of `find` on a file system without types, changed as needed.
fn with(change: impl FnOnce(&mut Recording)) -> Vec<Finding> {
    let mut recording = sample::find_recording();
    recording.traces.truncate(1);
    change(&mut recording);
    explained(recording).findings
}

fn run_by(words: &'static str) -> impl FnOnce(&mut Recording) {
    move |recording| {
        let root = recording.traces[0].observed.threads[0].clone();
        recording.traces[0].observed.programs = vec![sample::program(&root, words)];
    }
}

#[test]
fn it_is_found_where_types_are_missing_and_only_there() {
    let findings = explained(sample::find_recording()).findings;
    let found: Vec<_> = findings.iter().map(|f| (f.id.as_str(), f.place, f.avoidable_calls)).collect();
    assert_eq!(found, [("dtype-missing", 0, Some(30_000)), ("dtype-missing", 0, Some(30_000))]);
    let evidence = findings[0].evidence.join("\n");
    for expected in [
        "31,010 of 31,010 entries on /dev/loop0 (ext4) came as DT_UNKNOWN",
        "in 1,010 directories",
        "/d000 (30)",
        "30,000 of 33,055 newfstatat only ask for the type",
        "1,010 more turned out to be directories",
    ] {
        assert!(evidence.contains(expected), "{evidence}");
    }
    assert!(findings[0].cure[0].contains("-O filetype"));
}

#[test]
fn the_measured_time_lies_in_the_predicted_interval() {
    let recording = explained(sample::find_recording());
    for finding in &recording.findings {
        let Prediction { wall_ns, low_ns, high_ns, .. } = finding.predicted;
        let measured = median(&recording.untraced_walls(CaseKey { place: 1, ..recording.case_of(finding) })).unwrap();
        assert!((low_ns..=high_ns).contains(&measured), "{measured:?} is not as predicted: {:?}", finding.predicted);
        let width = (high_ns - low_ns).share_of(wall_ns);
        assert!(width <= 0.5, "{:?} is {width} wide", finding.predicted);
    }
}

#[test]
fn without_untraced_runs_the_tracing_cost_is_taken_off() {
    let with_runs = with(|_| ())[0].predicted;
    let without = with(|recording| recording.runs.retain(|run| run.traced))[0].predicted;
    let ratio = without.wall_ns.as_secs_f64() / with_runs.wall_ns.as_secs_f64();
    assert!((0.8..1.25).contains(&ratio), "{without:?} {with_runs:?}");
}

/// An estimate that is too high would make each nanosecond of the trace seem to be worth more than one.
#[test]
fn tracing_is_not_taken_to_have_cost_more_than_untraced_runs_show() {
    let with_cost = |times: u64| {
        with(|recording| {
            let trace = &mut recording.traces[0];
            trace.overhead.other_ns = Nanos(trace.wall_ns.0 * times);
        })[0]
            .predicted
    };
    assert_eq!(with_cost(1), with_cost(2));
}

#[test]
fn nobody_asked() {
    assert_eq!(with(|recording| recording.traces[0].dtype.forced.clear()), []);
}

#[test]
fn only_directories_were_asked_for() {
    assert_eq!(with(|recording| recording.traces[0].dtype.forced.retain(|forced| forced.directory)), []);
}

#[test]
fn the_program_stats_every_entry_anyway() {
    for words in ["du -s .", "ls -lR .", "tar cf /dev/null .", "busybox find .", "rsync -a . /x", "find . -size +1"] {
        assert_eq!(with(run_by(words)), [], "{words}");
    }
}

#[test]
fn it_costs_next_to_nothing() {
    assert_eq!(with(|recording| recording.traces[0].wall_ns = sample::ms(60_000.0)), []);
}

#[test]
fn of_an_unknown_program_it_says_what_it_assumes() {
    let known = &with(|_| ())[0];
    let assumed = &with(run_by("mytool ."))[0];
    assert!(assumed.evidence.iter().any(|line| line == "assumed, not known: mytool needs no more than the type"));
    assert!(assumed.predicted.high_ns > known.predicted.high_ns);
}

#[test]
fn a_fork_without_exec_is_the_program_it_was_forked_from() {
    let findings = with(|recording| {
        let trace = &mut recording.traces[0];
        let child = sample::thread(2, "find", Nanos(1), &[], &[]);
        trace.observed.threads.push(child);
        for forced in &mut trace.dtype.forced {
            forced.thread = 2;
        }
    });
    assert!(findings[0].title.contains("find asks"), "{}", findings[0].title);
}

#[test]
fn threads_side_by_side_save_less_of_the_wall_clock() {
    let alone = with(|_| ())[0].predicted;
    let shared = with(|recording| {
        let trace = &mut recording.traces[0];
        let mut second = trace.observed.threads[0].clone();
        (second.number, second.tid) = (2, 4_002);
        trace.observed.threads.push(second);
        let mut forced = trace.dtype.forced[0].clone();
        forced.thread = 2;
        forced.calls /= 2;
        forced.wall_ns = Nanos(forced.wall_ns.0 / 2);
        forced.cpu_ns = Nanos(forced.cpu_ns.0 / 2);
        forced.blocked_ns = Nanos(forced.blocked_ns.0 / 2);
        trace.dtype.forced = vec![ForcedLookup { thread: 1, ..forced.clone() }, forced];
    })[0]
        .predicted;
    assert!(shared.wall_ns > alone.wall_ns, "{shared:?} {alone:?}");
}

#[test]
fn waiting_for_a_cpu_in_the_look_ups_is_no_part_of_the_share() {
    let share = |ready: Nanos| {
        with(|recording| {
            let trace = &mut recording.traces[0];
            trace.dtype.forced.iter_mut().filter(|forced| !forced.directory).for_each(|forced| forced.wall_ns += ready);
            for call in
                trace.by_comm.iter_mut().flat_map(|of| &mut of.syscalls).filter(|call| call.name == "newfstatat")
            {
                call.wall_ns += ready;
                call.runqueue_ns += ready;
            }
        })[0]
            .share_of_wall
    };
    assert!((share(sample::ms(20.0)) - share(Nanos::ZERO)).abs() < 0.01);
}

#[test]
fn other_file_systems_have_other_cures() {
    let cure =
        |fs: &str| with(|recording| fs.clone_into(&mut recording.traces[0].dtype.filesystems[0].fs))[0].cure.join(" ");
    assert!(cure("overlay").contains("layers"));
    assert!(cure("fuse").contains("readdirplus"));
    assert!(cure("vboxsf").contains("driver"));
}
