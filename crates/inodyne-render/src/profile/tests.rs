//! Every format is read back independently, and its sums must be those of the ledgers.

use std::collections::BTreeMap;
use std::io::Read;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::Timeline;
use inodyne_model::path::{PathRow, PathTime, PathWait, Step, StepPart};
use inodyne_model::profile::StackTime;
use inodyne_model::recording::Recording;
use inodyne_model::sample;
use inodyne_model::stack::StackId;
use inodyne_model::trace::Trace;
use prost::Message;
use serde_json::Value;

use super::*;

fn recordings() -> Vec<Recording> {
    let mut all = vec![sample::find_recording(), sample::pipeline_recording(), hostile()];
    all.iter_mut().for_each(inodyne_analyse::explain);
    all.push(with_path(all[0].clone()));
    all
}

/// As if its path had been walked: some time of its own, some in a wait in which a journal waited for its device, the rest unexplained.
fn with_path(mut recording: Recording) -> Recording {
    for trace in &mut recording.traces {
        let stack = trace.observed.stacks[0].id;
        let seen = StackTime { thread: 1, stack, syscall: None, count: 1, ..trace.stacks.on_cpu[0].clone() };
        let row = |kind, cause| PathRow { kind, syscall: Some("fsync".to_owned()), cause, via: Vec::new() };
        let wait = PathWait {
            thread: 1,
            syscall: Some("fsync".to_owned()),
            cause: Some(Cause::Journal),
            stack,
            helper: "jbd2 7".to_owned(),
        };
        let part = |row: PathRow, waits: &[PathWait], ns| {
            let (kind, cause) = (row.kind, row.cause);
            PathTime { row, waits: waits.to_vec(), time: StackTime { kind, cause, ns: Nanos(ns), ..seen.clone() } }
        };
        trace.path.stacks = vec![
            part(row(RowKind::Kernel, None), &[], 3_000),
            part(row(RowKind::Blocked, Some(Cause::DeviceWrite)), &[wait], 2_000),
            part(row(RowKind::Unexplained, None), &[], trace.wall_ns.0 - 5_000),
        ];
    }
    recording
}

/// Names that would break each of the formats if they were taken as they are.
fn hostile() -> Recording {
    let mut recording = sample::find_recording();
    for trace in &mut recording.traces {
        trace.observed.threads[0].comm = "a;b\nc 12".to_owned();
        trace.observed.stacks[0].frames[0] = inodyne_model::stack::Frame::Symbol("</script> \u{202e}x 7 8".to_owned());
        trace.observed.stacks[1].frames[0] = inodyne_model::stack::Frame::Unknown { address: u64::MAX };
    }
    recording
}

fn each(check: impl Fn(&Traced<'_>, View, u64)) {
    for recording in recordings() {
        for traced in Traced::all(&recording) {
            for view in traced.views().iter().copied() {
                check(&traced, view, of_ledgers(traced.trace, view));
            }
        }
    }
}

/// What a view must sum to: the wall-clock time, or the ledgers of all threads.
fn of_ledgers(trace: &Trace, view: View) -> u64 {
    let of_view = |kind| match view {
        View::CriticalPath | View::Wall => true,
        View::OnCpu => matches!(kind, RowKind::User | RowKind::Kernel),
        View::OffCpu => !matches!(kind, RowKind::User | RowKind::Kernel),
    };
    if view == View::CriticalPath {
        return trace.wall_ns.0;
    }
    let rows = trace.threads.iter().flat_map(|thread| &thread.rows);
    rows.filter(|row| of_view(row.kind)).map(|row| row.ns).sum::<Nanos>().0
}

#[test]
fn the_whole_is_the_lives_of_the_threads() {
    for recording in recordings() {
        for trace in &recording.traces {
            let lives: Nanos = trace.threads.iter().map(|thread| thread.lifetime_ns).sum();
            assert_eq!(of_ledgers(trace, View::Wall), lives.0);
        }
    }
}

#[test]
fn folded_stacks_sum_to_the_ledgers() {
    each(|traced, view, expected| {
        let text = folded(traced, view);
        let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        assert_eq!(text.lines().map(count).sum::<u64>(), expected);
        // By cause, too: what ends in a cause's frame is what the ledgers say about it.
        for row in traced.trace.threads.iter().flat_map(|thread| &thread.rows) {
            let of_threads = matches!(view, View::Wall | View::OffCpu);
            let Some(cause) = row.cause.filter(|_| of_threads) else { continue };
            let tail = format!("[blocked: {cause}]");
            let blocked = text.lines().filter(|line| line.contains(&tail)).map(count).sum::<u64>();
            let rows = traced.trace.threads.iter().flat_map(|thread| &thread.rows);
            assert_eq!(blocked, rows.filter(|row| row.cause == Some(cause)).map(|row| row.ns.0).sum::<u64>());
        }
    });
}

#[test]
fn a_wait_on_the_path_goes_on_in_who_was_waited_for() {
    let recording = with_path(recordings().swap_remove(0));
    let traced = Traced::all(&recording)[0];
    assert_eq!(traced.views()[0], View::CriticalPath);
    let text = folded(&traced, View::CriticalPath);
    let line = text.lines().find(|line| line.contains("jbd2")).expect("the wait");
    let (stack, ns) = line.rsplit_once(' ').unwrap();
    assert!(stack.starts_with("find;") && stack.ends_with("[blocked: device-write]") && ns == "2000", "{line}");
    assert!(stack.contains(";fsync;") && stack.contains(";[blocked: journal];jbd2_7;"), "{line}");
    assert!(text.lines().any(|line| line.starts_with("[unexplained] ")), "the residual is a frame: {text}");
}

#[test]
fn a_difference_of_a_trace_and_itself_is_none() {
    each(|traced, view, _| {
        for line in folded_difference(traced, traced, view).lines() {
            let mut words = line.rsplit(' ');
            assert_eq!(words.next(), words.next());
        }
    });
}

#[test]
fn a_difference_has_both_sums() {
    let recording = &recordings()[0];
    let traced = Traced::all(recording);
    let text = folded_difference(&traced[1], &traced[0], View::Wall);
    let column = |from_the_end: usize| -> u64 {
        text.lines().map(|line| line.rsplit(' ').nth(from_the_end).unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(column(1), of_ledgers(traced[1].trace, View::Wall));
    assert_eq!(column(0), of_ledgers(traced[0].trace, View::Wall));
    let svg = flame_graph_difference(&traced[1], &traced[0], View::Wall).unwrap();
    assert!(svg.contains("find . on slow (cold) since find . on fast (cold)"), "{svg}");
}

#[test]
fn flame_graphs_hold_every_nanosecond_and_no_markup_of_the_data() {
    each(|traced, view, expected| {
        let svg = flame_graph(traced, view).unwrap();
        assert!(svg.contains(&format!("total_samples=\"{expected}\"")), "{expected}");
        assert!(!svg.contains("</script> \\u"), "markup in a name");
        assert!(!svg.contains('\u{202e}'));
    });
    let mut empty = sample::find_recording();
    empty.traces[0].stacks = Default::default();
    assert_eq!(flame_graph(&Traced::all(&empty)[0], View::Wall), Err(NoFlameGraph::Empty));
}

#[test]
fn speedscope_weights_sum_to_the_ledgers() {
    for recording in recordings() {
        for traced in Traced::all(&recording) {
            let file: Value = serde_json::from_str(&speedscope(&traced, traced.views())).unwrap();
            let frames = file["shared"]["frames"].as_array().unwrap();
            assert!(frames.iter().all(|frame| frame["name"].is_string()));
            for (profile, view) in file["profiles"].as_array().unwrap().iter().zip(traced.views().iter().copied()) {
                assert_eq!(
                    (profile["type"].as_str(), profile["unit"].as_str()),
                    (Some("sampled"), Some("nanoseconds"))
                );
                let weights: Vec<u64> = serde_json::from_value(profile["weights"].clone()).unwrap();
                let samples: Vec<Vec<usize>> = serde_json::from_value(profile["samples"].clone()).unwrap();
                assert_eq!(weights.len(), samples.len());
                assert!(samples.iter().flatten().all(|frame| *frame < frames.len()));
                assert_eq!(weights.iter().sum::<u64>(), of_ledgers(traced.trace, view));
                assert_eq!(profile["endValue"].as_u64(), Some(of_ledgers(traced.trace, view)));
            }
        }
    }
}

#[test]
fn firefox_weights_sum_to_the_ledgers() {
    each(|traced, view, expected| {
        let file: Value = serde_json::from_str(&firefox(traced, view)).unwrap();
        assert!(file["meta"]["version"].is_number() && file["meta"]["preprocessedProfileVersion"].is_number());
        let (mut sum, mut of_path) = (0.0, None);
        for thread in file["threads"].as_array().unwrap() {
            let samples = &thread["samples"];
            assert_eq!(samples["weightType"], "tracing-ms");
            let (weights, stacks) = (samples["weight"].as_array().unwrap(), samples["stack"].as_array().unwrap());
            assert_eq!((weights.len(), samples["length"].as_u64()), (stacks.len(), Some(stacks.len() as u64)));
            let stack_count = thread["stackTable"]["length"].as_u64().unwrap();
            assert!(stacks.iter().all(|stack| stack.as_u64().is_some_and(|stack| stack < stack_count)));
            let all = weights.iter().map(|weight| weight.as_f64().unwrap()).sum::<f64>();
            match thread["name"].as_str().unwrap() {
                name if name.ends_with(", summed by stack") => sum += all,
                "critical path" => of_path = Some(all),
                _ => {}
            }
        }
        assert!((sum * 1e6 - expected as f64).abs() < 1.0, "{sum} ms instead of {expected} ns");
        assert_eq!(of_path.is_some(), view == View::CriticalPath);
        assert!(of_path.is_none_or(|ms| (ms * 1e6 - expected as f64).abs() < 1.0), "{of_path:?}");
    });
}

#[test]
fn firefox_has_waits_and_steps_of_the_path_at_their_times() {
    let mut recording = with_path(recordings().swap_remove(0));
    let trace = &mut recording.traces[0];
    let waited = trace.observed.waits[1].clone();
    trace.observed.timeline = Timeline {
        thread: vec![1],
        out_ns: vec![1_000_000],
        blocked_ns: vec![2_000_000],
        ready_ns: vec![500_000],
        call: vec![0],
        stack: vec![1],
        waker: vec![waited.waker],
        waker_tid: vec![0],
        waker_thread: vec![0],
        waker_stack: vec![0],
        calls: vec!["getdents64".to_owned()],
        stacks: vec![StackId(0), waited.stack],
        ..Timeline::default()
    };
    let row = PathRow { kind: RowKind::Kernel, syscall: Some("openat".to_owned()), cause: None, via: Vec::new() };
    trace.path.rows = vec![row];
    trace.path.parts = vec![StepPart { row: 0, ns: Nanos(3_000_000) }];
    trace.path.steps = vec![Step { from_ns: 2_000_000, thread: 1, first: 0, count: 1 }];
    let traced = Traced::all(&recording)[0];
    let file: Value = serde_json::from_str(&firefox(&traced, View::CriticalPath)).unwrap();
    let track = |name: &str| {
        let thread = file["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == name).unwrap();
        let text = |index: &Value| thread["stringArray"][index.as_u64().unwrap() as usize].as_str().unwrap().to_owned();
        let markers = &thread["markers"];
        let marker = |at: usize| {
            let data = &markers["data"][at];
            let texts = [&markers["name"][at], &data["what"], &data["who"]].map(text).join(", ");
            format!("{} to {}: {texts}", markers["startTime"][at], markers["endTime"][at])
        };
        let samples = &thread["samples"];
        let stack = |at: &Value| {
            let (stacks, frames) = (&thread["stackTable"], &thread["frameTable"]);
            let mut names = Vec::new();
            let mut stack = at.as_u64();
            while let Some(index) = stack {
                let frame = &stacks["frame"][index as usize];
                let func = &frames["func"][frame.as_u64().unwrap() as usize];
                names.push(text(&thread["funcTable"]["name"][func.as_u64().unwrap() as usize]));
                stack = stacks["prefix"][index as usize].as_u64();
            }
            names.reverse();
            names.join(";")
        };
        let mut at = 0.0;
        let sample = |index: usize| {
            at += samples["timeDeltas"][index].as_f64().unwrap();
            format!("{at:.3} {} {}", samples["weight"][index], stack(&samples["stack"][index]))
        };
        let markers = (0..markers["length"].as_u64().unwrap() as usize).map(marker).collect::<Vec<_>>();
        (markers, (0..samples["length"].as_u64().unwrap() as usize).map(sample).collect::<Vec<_>>())
    };
    let (markers, _) = track("critical path");
    assert_eq!(markers, ["2.0 to 5.0: openat, kernel, in find"]);
    let (markers, samples) = track("find");
    let woken = "woken by an interrupt";
    assert_eq!(
        markers,
        [
            format!("1.0 to 3.0: getdents64, blocked: device-read, {woken}"),
            format!("3.0 to 3.5: getdents64, waiting for a CPU, {woken}"),
        ]
    );
    let short = |sample: &String| {
        let (of, frames) = sample.split_once(';').unwrap();
        let calls = frames.split(';').filter(|frame| frame.starts_with('[') || *frame == "getdents64");
        format!("{of};{}", calls.collect::<Vec<_>>().join(";"))
    };
    let samples = samples.iter().map(short).collect::<Vec<_>>();
    let device = "find;getdents64;[blocked: device-read]";
    let ready = "find;getdents64;[waiting for a CPU]";
    assert_eq!(samples[..2], ["0.000 0.5 find;[on a CPU]", "1.000 0.5 find;[on a CPU]"]);
    assert_eq!(samples[2..4], [format!("1.000 1.0 {device}"), format!("3.000 1.0 {device}")]);
    assert_eq!(samples[4..6], [format!("3.000 0.25 {ready}"), format!("3.500 0.25 {ready}")]);
    assert_eq!(samples[6..], ["3.500 90.752 find;[on a CPU]", "185.004 90.752 find;[on a CPU]"]);
}

#[test]
fn firefox_has_nobody_on_a_cpu_where_nothing_is_known_of_that() {
    let mut recording = sample::window_recording();
    inodyne_analyse::explain(&mut recording);
    let file: Value = serde_json::from_str(&firefox(&Traced::all(&recording)[0], View::Wall)).unwrap();
    for thread in file["threads"].as_array().unwrap() {
        let by_stack = thread["name"].as_str().unwrap().ends_with(", summed by stack");
        assert_eq!(thread["samples"]["length"] == 0, !by_stack, "{}", thread["name"]);
        assert!(!thread["stringArray"].as_array().unwrap().contains(&Value::from("[on a CPU]")));
    }
}

/// The parts of `profile.proto` that a reader needs to sum it up, decoded by a different implementation from the one that
/// encodes it.
#[derive(Clone, PartialEq, Message)]
struct ProtoProfile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ProtoValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<ProtoSample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<ProtoLocation>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<ProtoFunction>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoSample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoLocation {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<ProtoLine>,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoLine {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoFunction {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

#[test]
fn pprof_values_sum_to_the_ledgers_and_every_number_points_at_something() {
    each(|traced, view, expected| {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(pprof(traced, view).as_slice()).read_to_end(&mut bytes).unwrap();
        let profile = ProtoProfile::decode(bytes.as_slice()).unwrap();
        let text = |index: i64| profile.string_table[usize::try_from(index).unwrap()].as_str();
        assert_eq!(text(0), "");
        assert_eq!(profile.sample_type.iter().map(|t| text(t.unit)).collect::<Vec<_>>(), ["count", "nanoseconds"]);
        assert_eq!(text(profile.default_sample_type), text(profile.sample_type[1].r#type));
        assert_eq!(profile.duration_nanos as u64, traced.trace.wall_ns.0);
        let functions: BTreeMap<u64, &str> = profile.function.iter().map(|f| (f.id, text(f.name))).collect();
        let locations: BTreeMap<u64, &str> =
            profile.location.iter().map(|location| (location.id, functions[&location.line[0].function_id])).collect();
        let comms: Vec<String> = traced.trace.threads.iter().map(|thread| crate::line::escaped(&thread.comm)).collect();
        for sample in &profile.sample {
            let root = locations[sample.location_id.last().unwrap()];
            assert!(comms.iter().any(|comm| comm == root) || root == "[unexplained]", "{root}");
        }
        assert_eq!(profile.sample.iter().map(|sample| sample.value[1] as u64).sum::<u64>(), expected);
    });
}
