//! What the file says, decoded by a different implementation from the one that encodes it.

use inodyne_model::ledger::RowKind;
use inodyne_model::observed::Timeline;
use inodyne_model::path::{CriticalPath, PathRow, Step};
use inodyne_model::recording::Recording;
use inodyne_model::sample;
use inodyne_model::trace::Tracer;
use prost::Message;

use super::*;

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, tag = "8")]
    timestamp: u64,
    #[prost(message, optional, tag = "11")]
    event: Option<Event>,
    #[prost(message, optional, tag = "12")]
    interned: Option<Interned>,
    #[prost(uint32, tag = "13")]
    flags: u32,
    #[prost(message, optional, tag = "60")]
    track: Option<Track>,
}

#[derive(Clone, PartialEq, Message)]
struct Track {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(message, repeated, tag = "4")]
    annotations: Vec<Annotation>,
    #[prost(uint32, tag = "9")]
    kind: u32,
    #[prost(uint64, tag = "10")]
    name: u64,
    #[prost(uint64, tag = "11")]
    track: u64,
    #[prost(double, tag = "44")]
    counter: f64,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flows: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    last_of_flows: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(uint64, tag = "1")]
    name: u64,
    #[prost(uint64, tag = "17")]
    text: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Interned {
    #[prost(message, repeated, tag = "2")]
    names: Vec<Text>,
    #[prost(message, repeated, tag = "3")]
    argument_names: Vec<Text>,
    #[prost(message, repeated, tag = "29")]
    argument_texts: Vec<Text>,
}

#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(string, tag = "2")]
    text: String,
}

/// A slice as it is drawn.
#[derive(Debug)]
struct Slice {
    track: u64,
    name: String,
    from: u64,
    to: u64,
    arguments: Vec<(String, String)>,
}

struct Read {
    tracks: HashMap<u64, String>,
    slices: Vec<Slice>,
    /// Arrows: where each comes from, and where it goes to.
    flows: HashMap<u64, [Option<(u64, u64)>; 2]>,
    counters: Vec<(u64, u64, f64)>,
}

/// Reads a file as Perfetto does: a text is known from the packet that defines it on, and slices of a track are nested.
fn read(bytes: &[u8]) -> Read {
    let file = File::decode(bytes).expect("packets");
    let mut texts: [HashMap<u64, String>; 3] = Default::default();
    let mut open: HashMap<u64, Vec<Slice>> = HashMap::new();
    let mut read = Read { tracks: HashMap::new(), slices: Vec::new(), flows: HashMap::new(), counters: Vec::new() };
    let mut events = 0;
    for packet in file.packet {
        if let Some(track) = packet.track {
            read.tracks.insert(track.uuid, track.name);
        }
        let Some(event) = packet.event else { continue };
        assert_eq!(packet.flags & 1 == 1, events == 0, "the first packet alone forgets");
        events += 1;
        let new = packet.interned.unwrap_or_default();
        for (texts, new) in texts.iter_mut().zip([new.names, new.argument_names, new.argument_texts]) {
            texts.extend(new.into_iter().map(|text| (text.number, text.text)));
        }
        assert!(read.tracks.contains_key(&event.track), "a track is told before its events");
        let at = packet.timestamp;
        let arguments = event.annotations.iter();
        let arguments = arguments.map(|one| (texts[1][&one.name].clone(), texts[2][&one.text].clone())).collect();
        event.flows.iter().for_each(|flow| read.flows.entry(*flow).or_default()[0] = Some((event.track, at)));
        event.last_of_flows.iter().for_each(|flow| read.flows.entry(*flow).or_default()[1] = Some((event.track, at)));
        match event.kind {
            1 => {
                let name = texts[0][&event.name].clone();
                open.entry(event.track).or_default().push(Slice {
                    track: event.track,
                    name,
                    from: at,
                    to: 0,
                    arguments,
                });
            }
            2 => {
                let begun = open.get_mut(&event.track).and_then(Vec::pop).expect("what ends has begun");
                read.slices.push(Slice { to: at, ..begun });
            }
            3 => {}
            4 => read.counters.push((event.track, at, event.counter)),
            other => panic!("kind {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "everything ends");
    read
}

#[test]
fn the_timeline_fills_the_life_of_every_thread() {
    let mut recording = sample::find_recording();
    let observed = &mut recording.traces[0].observed;
    let (waited, ms) = (observed.waits[1].clone(), |n: u64| n * 1_000_000);
    observed.timeline = Timeline {
        thread: vec![1, 1],
        out_ns: vec![ms(10), ms(30)],
        blocked_ns: vec![ms(5), 0],
        ready_ns: vec![ms(1), ms(2)],
        call: vec![1, 0],
        stack: vec![1, 0],
        waker: vec![waited.waker, Waker::Unknown],
        waker_tid: vec![0, 0],
        waker_thread: vec![0; 2],
        waker_stack: vec![0, 0],
        calls: vec![String::new(), "getdents64".to_owned()],
        stacks: vec![StackId(0), waited.stack],
        ..Timeline::default()
    };
    inodyne_analyse::explain(&mut recording);
    let traced = Traced::all(&recording)[0];
    let read = read(&perfetto(&traced));
    let slices: Vec<&Slice> = read.slices.iter().filter(|slice| slice.track == THREADS + 1).collect();
    let names: Vec<&str> = slices.iter().map(|slice| slice.name.as_str()).collect();
    assert_eq!(names, ["on CPU", "blocked: device-read", "waiting for a CPU", "on CPU", "waiting for a CPU", "on CPU"]);
    let mut at = 0;
    for slice in &slices {
        assert_eq!(slice.from, at, "{slice:?}");
        at = slice.to;
    }
    assert_eq!(at, traced.trace.threads[0].lifetime_ns.0);
    let call = slices[1].arguments.iter().find(|(name, _)| name == "call");
    assert_eq!(call.map(|(_, text)| text.as_str()), Some("getdents64"));
    assert_eq!(read.tracks[&(THREADS + 1)], "find");
    // The time in each state is that of the slices, as far as the parts of the counters reach.
    let blocked: f64 = of_counter(&read, COUNTERS[2].0, traced.trace.wall_ns.0);
    assert!((blocked - 5e6).abs() < 1e6, "{blocked}");
    // After the end, when helpers may still be drawn, none of the command's threads does anything.
    for (track, name) in COUNTERS {
        let last = read.counters.iter().rfind(|(of, ..)| *of == track).expect(name);
        assert!(last.1 <= traced.trace.wall_ns.0 && last.2 == 0.0, "{name}: {last:?}");
    }
}

/// `attach` keeps no timeline unless it is asked about requests, and an strace log knows only of waits for children.
#[test]
fn nobody_is_on_a_cpu_where_nothing_is_known_of_that() {
    let mut log = with_a_wait();
    log.traces[0].tracer = Tracer::Strace;
    for (mut recording, off_cpu) in [(sample::window_recording(), 0), (log, 2)] {
        inodyne_analyse::explain(&mut recording);
        let read = read(&perfetto(&Traced::all(&recording)[0]));
        let of_threads: Vec<&str> =
            read.slices.iter().filter(|one| one.track >= THREADS).map(|one| one.name.as_str()).collect();
        assert!(!of_threads.contains(&"on CPU"), "{of_threads:?}");
        assert_eq!(of_threads.len(), off_cpu);
        assert!(read.tracks.contains_key(&(THREADS + 1)), "each thread has a track");
        assert!(COUNTERS.iter().all(|(track, _)| !read.tracks.contains_key(track)), "{:?}", read.tracks);
        assert!(read.flows.values().all(|ends| ends[0].is_none()), "an arrow that leads nowhere: {:?}", read.flows);
    }
}

/// What a counter adds up to.
fn of_counter(read: &Read, track: u64, end: u64) -> f64 {
    let values: Vec<_> = read.counters.iter().filter(|(of, ..)| *of == track).collect();
    let until = values.iter().skip(1).map(|(_, at, _)| *at).chain([end]);
    values.iter().zip(until).map(|((_, from, value), to)| (to - from) as f64 * value).sum()
}

#[test]
fn what_disks_did_over_time_are_counters() {
    let mut recording = sample::find_recording();
    sample::add_block_io(&mut recording.traces[0]);
    inodyne_analyse::explain(&mut recording);
    let read = read(&perfetto(&Traced::all(&recording)[0]));
    let track = |name: &str| {
        let named = read.tracks.iter().find(|(_, track)| *track == name);
        *named.unwrap_or_else(|| panic!("{name}: {:?}", read.tracks)).0
    };
    // Megabytes per second, times nanoseconds.
    let sums = [("loop0 read, MB/s", 160 << 10), ("loop0 written, MB/s", 1_800 << 10)];
    for (name, bytes) in sums {
        let sum = of_counter(&read, track(name), 80_000_000) / 1e9 * 1e6;
        assert!((sum - f64::from(bytes)).abs() < 1.0, "{name}: {sum}");
    }
    let first = |name: &str| {
        let track = track(name);
        read.counters.iter().find(|(of, ..)| *of == track).map(|(_, at, value)| (*at, *value))
    };
    assert_eq!(first("loop0 requests in flight"), Some((0, 1.2)));
    assert_eq!(first("dirty pages, MB"), Some((0, 9.216)));
}

#[test]
fn each_commit_of_a_journal_is_a_slice() {
    let mut recording = sample::find_recording();
    recording.traces[0].journals = vec![sample::journal()];
    inodyne_analyse::explain(&mut recording);
    let read = read(&perfetto(&Traced::all(&recording)[0]));
    let (track, _) = read.tracks.iter().find(|(_, name)| *name == "journal of loop0").expect("a track");
    let commits: Vec<&Slice> = read.slices.iter().filter(|slice| slice.track == *track).collect();
    assert_eq!(commits.len(), 30);
    let Slice { name, from, to, arguments, .. } = commits[2];
    assert_eq!((name.as_str(), *from, *to), ("commit", 6_000_000, 7_700_000));
    assert_eq!(*arguments, [("blocks".to_owned(), "15".to_owned())]);
}

/// The first thread waits once, for the second one.
fn with_a_wait() -> Recording {
    let mut recording = sample::pipeline_recording();
    let observed = &mut recording.traces[0].observed;
    let waited = observed.waits[0].clone();
    observed.timeline = Timeline {
        thread: vec![1],
        out_ns: vec![1_000],
        blocked_ns: vec![2_000],
        ready_ns: vec![500],
        call: vec![0],
        stack: vec![1],
        waker: vec![Waker::Traced],
        waker_tid: vec![0],
        waker_thread: vec![2],
        waker_stack: vec![0],
        calls: vec!["read".to_owned()],
        stacks: vec![StackId(0), waited.stack],
        ..Timeline::default()
    };
    recording
}

#[test]
fn who_ends_a_wait_points_at_who_waited() {
    let mut recording = with_a_wait();
    inodyne_analyse::explain(&mut recording);
    let read = read(&perfetto(&Traced::all(&recording)[0]));
    let arrows: Vec<_> = read.flows.into_values().collect();
    assert_eq!(arrows, [[Some((THREADS + 2, 3_000)), Some((THREADS + 1, 3_500))]]);
}

#[test]
fn damaged_columns_are_no_reason_to_panic() {
    let mut recording = sample::find_recording();
    let timeline = &mut recording.traces[0].observed.timeline;
    timeline.thread = vec![1, 9, 9];
    timeline.out_ns = vec![u64::MAX, 3];
    timeline.call = vec![77, 78];
    for column in [&mut timeline.blocked_ns, &mut timeline.ready_ns] {
        *column = vec![u64::MAX, u64::MAX];
    }
    inodyne_analyse::explain(&mut recording);
    for traced in Traced::all(&recording) {
        read(&perfetto(&traced));
    }
}

#[test]
fn the_path_is_a_track_of_its_own() {
    let mut recording = sample::find_recording();
    inodyne_analyse::explain(&mut recording);
    let row = |kind, syscall: Option<&str>| PathRow {
        kind,
        syscall: syscall.map(str::to_owned),
        cause: None,
        via: Vec::new(),
    };
    recording.traces[0].path = CriticalPath {
        rows: vec![row(RowKind::User, None), row(RowKind::Kernel, Some("openat"))],
        parts: vec![
            StepPart { row: 0, ns: Nanos(3_000) },
            StepPart { row: 1, ns: Nanos(7_000) },
            StepPart { row: 0, ns: Nanos(1_000) },
        ],
        steps: vec![
            Step { from_ns: 5_000, thread: 1, first: 0, count: 2 },
            Step { from_ns: 15_000, thread: 1, first: 2, count: 1 },
        ],
        ..CriticalPath::default()
    };
    let read = read(&perfetto(&Traced::all(&recording)[0]));
    let slices: Vec<&Slice> = read.slices.iter().filter(|slice| slice.track == PATH_TRACK).collect();
    let [first, second] = slices[..] else { panic!("{slices:#?}") };
    assert_eq!((first.name.as_str(), first.from, first.to), ("openat kernel", 5_000, 15_000));
    let said = [("in", "find"), ("of", "openat kernel: 7.00 µs, user: 3.00 µs")];
    assert_eq!(first.arguments, said.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!((second.name.as_str(), second.to - second.from), ("user", 1_000));
    assert!(read.tracks[&PATH_TRACK].starts_with("critical path"));
}
