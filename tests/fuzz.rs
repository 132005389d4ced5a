//! Files may be damaged or malicious: recordings, studies, places, archives and logs that were changed at random end in an answer
//! or in a one-line error, never in a panic, and in bounded memory.
//!
//! Two seconds each, or `INODYNE_FUZZ_SECONDS`: `make fuzz` takes ten minutes for each. What is changed is otherwise well formed,
//! so that the changes reach what lies behind the parsers.

mod support;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use inodyne_lab::{DataSpec, Owner, PlaceSpec};
use inodyne_model::random::Random;
use inodyne_model::recording::Recording;
use inodyne_render::{Section, TextOptions, Traced};
use serde_json::{Value, json};
use support::state::seed;
use support::{inodyne, load, machine, run, scratch};

/// What a recording may expand to here.
const LIMIT_BYTES: u64 = 64 << 20;
/// For this process, all targets together.
const MOST_MEMORY_KIB: i64 = 1 << 20;

/// How many inputs are tried for each target at least, however slow the machine is.
const LEAST: u64 = 60;

/// How long each target is tried.
fn time() -> Duration {
    let seconds = std::env::var("INODYNE_FUZZ_SECONDS");
    Duration::from_secs(seconds.map_or(2, |seconds| seconds.parse().expect("INODYNE_FUZZ_SECONDS is a number")))
}

/// Tries changed inputs until the time is over. What ends in a panic is kept, and named with it.
fn try_for<T: AsRef<[u8]>>(name: &str, make: impl Fn(&mut Random) -> T, mut try_one: impl FnMut(&T)) {
    let (mut random, started, mut tried) = (Random::seeded(seed()), Instant::now(), 0u64);
    while started.elapsed() < time() || tried < LEAST {
        let input = make(&mut random);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| try_one(&input))) {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
            fs::write(&kept, &input).expect("the input is kept");
            eprintln!("{name}: number {tried}, kept in {}", kept.display());
            std::panic::resume_unwind(panic);
        }
        tried += 1;
    }
    let most = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("usage").max_rss();
    eprintln!("{name}: {tried} tried, {most} KiB at most");
    assert!(most < MOST_MEMORY_KIB, "{name}: {most} KiB after {tried}");
}

fn any<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len())]
}

const TEXTS: [&str; 14] = [
    "",
    "read",
    "newfstatat",
    "ext4",
    "\u{1b}[31m",
    "</script><script>",
    "a b",
    "é",
    "日本\u{200f}",
    "0",
    "-1",
    "%s%n",
    "\0",
    "[[",
];

/// Replaces this value by another one.
fn alter(random: &mut Random, value: &mut Value) {
    *value = match value {
        Value::Null => any(random, &[json!(0), json!(""), json!([]), json!({})]).clone(),
        Value::Bool(is) => json!(!*is),
        Value::Number(number) => {
            let now = number.as_u64().unwrap_or(1);
            any(
                random,
                &[
                    json!(0),
                    json!(1),
                    json!(-1),
                    json!(0.5),
                    json!(1e300),
                    json!(u32::MAX),
                    json!(i64::MAX),
                    json!(u64::MAX),
                    json!(now.wrapping_add(1)),
                    json!(now.wrapping_mul(1000)),
                    json!(now / 2),
                    Value::Null,
                ],
            )
            .clone()
        }
        Value::String(text) => match random.below(4) {
            0 => json!(text.repeat(200)),
            1 => json!(text.chars().rev().collect::<String>()),
            _ => json!(any(random, &TEXTS)),
        },
        Value::Array(list) => {
            match random.below(5) {
                0 => list.clear(),
                1 => list.truncate(list.len() / 2),
                2 => list.reverse(),
                3 => list.extend(list.first().cloned()),
                _ => list.extend(list.clone()),
            }
            return;
        }
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            match names.len() {
                0 => drop(fields.insert("more".to_owned(), json!(1))),
                count => drop(fields.remove(&names[random.below(count)])),
            }
            return;
        }
    };
}

/// Changes one thing somewhere in it.
fn change(random: &mut Random, value: &mut Value) {
    let deeper = random.below(12) > 0;
    match value {
        Value::Array(list) if deeper && !list.is_empty() => {
            let at = random.below(list.len());
            change(random, &mut list[at]);
        }
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let at = random.below(fields.len());
            change(random, fields.values_mut().nth(at).expect("counted"));
        }
        _ => alter(random, value),
    }
}

/// Recordings of real commands: of two places, of processes and threads, of a failing one, one without a trace.
fn real_recordings(scratch: &Path) -> Vec<Value> {
    let _machine = machine();
    let file = scratch.join("real.inodyne");
    let fast = "ext4:size=64M";
    let tree = "tree:dirs=20,files=10,bytes=100";
    let commands: [&[&str]; 5] = [
        &[
            "--at",
            "ext4:size=64M,mkfs=-O ^filetype",
            "--at",
            fast,
            "--data",
            tree,
            "--cache",
            "cold",
            "-n",
            "2",
            "--",
            "find",
            ".",
        ],
        &[
            "--at",
            fast,
            "--data",
            tree,
            "--paths",
            "--files",
            "--",
            "sh",
            "-c",
            "cat */* >all; sync all & ls -lR | sort | tail -1; wait",
        ],
        &[
            "--at",
            "tmpfs",
            "--",
            "/usr/bin/python3",
            "-c",
            "import threading as t; [t.Thread(target=sum, args=(range(10**6),)).start() for _ in '1234']",
        ],
        &[
            "--at",
            fast,
            "--durable",
            "-n",
            "3",
            "--",
            "sh",
            "-c",
            "dd if=/dev/zero of=f bs=4k count=50 oflag=dsync; exit 3",
        ],
        &["--tracer", "none", "-n", "4", "--", "true"],
    ];
    let recorded = commands.map(|arguments| {
        run(inodyne().args(["run", "-o"]).arg(&file).args(arguments));
        serde_json::to_value(load(&file).expect("a recording")).expect("JSON")
    });
    recorded.into()
}

/// All that can be shown of a recording.
fn show(recording: &Recording) {
    let verbose = TextOptions { verbose: true, ..TextOptions::default() };
    for width in [0, 80, 400] {
        inodyne_render::text(recording, &TextOptions { width, ..TextOptions::default() });
        inodyne_render::text(recording, &TextOptions { width, colour: true, ..verbose });
    }
    for section in Section::all() {
        inodyne_render::text(recording, &TextOptions { section: Some(section), ..verbose });
        inodyne_render::csv(recording, section);
        inodyne_render::json_section(recording, section);
    }
    inodyne_render::markdown(recording, None);
    inodyne_render::json(recording, &mut std::io::sink()).expect("a sink takes all");
    inodyne_render::html(recording);
    inodyne_render::hyperfine(recording);
    drop(inodyne_render::card(recording));
    for traced in Traced::all(recording) {
        let views = traced.views();
        for view in views {
            inodyne_render::folded(&traced, *view);
            inodyne_render::pprof(&traced, *view);
            inodyne_render::firefox(&traced, *view);
            drop(inodyne_render::flame_graph(&traced, *view));
        }
        inodyne_render::speedscope(&traced, views);
        inodyne_render::perfetto(&traced);
    }
}

#[test]
fn recordings() {
    let real = real_recordings(scratch().path());
    let (mut shown, mut all) = (0u64, 0u64);
    let make = |random: &mut Random| {
        let mut value = any(random, &real).clone();
        for _ in 0..1 + random.below(4) {
            change(random, &mut value);
        }
        zstd::encode_all(value.to_string().as_bytes(), 1).expect("compressed")
    };
    try_for("recordings", make, |bytes| {
        all += 1;
        let Ok(mut recording) = Recording::read(&bytes[..], LIMIT_BYTES) else { return };
        shown += 1;
        let as_recorded = recording.clone();
        // As it is stored, as `show` has it, and against another one.
        show(&recording);
        inodyne_analyse::explain(&mut recording);
        show(&recording);
        let difference = inodyne_analyse::difference(&as_recorded, &recording, &[]);
        inodyne_render::difference_text(&difference, &TextOptions::default());
        inodyne_render::difference_html(&difference);
        inodyne_render::difference_junit(&difference);
    });
    assert!(shown * 5 > all, "only {shown} of {all} were recordings still");
}

/// Changes lines and words of a text.
fn changed_text(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + random.below(4) {
        if lines.is_empty() {
            break;
        }
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => {
                let cut = lines[at].char_indices().nth(random.below(lines[at].len() + 1)).map(|(place, _)| place);
                lines[at].truncate(cut.unwrap_or(0));
            }
            _ => {
                let apart = |c: char| !c.is_alphanumeric();
                let words: Vec<String> = lines[at].split(apart).filter(|w| !w.is_empty()).map(str::to_owned).collect();
                if !words.is_empty() {
                    const NUMBERS: [&str; 5] =
                        ["99999999999999999999", "18446744073709551615", "1e99", "-5", "0.0000001"];
                    let new = if random.below(2) == 0 { any(random, &TEXTS) } else { any(random, &NUMBERS) };
                    lines[at] = lines[at].replacen(any(random, &words).as_str(), new, 1);
                }
            }
        }
    }
    lines.join("\n")
}

#[test]
fn studies() {
    let scratch = scratch();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let files = fs::read_dir(directory).expect("the studies").flatten().map(|entry| entry.path());
    let real: Vec<String> =
        files.filter_map(|path| fs::read_to_string(path).ok()).filter(|text| text.contains("[[part]]")).collect();
    assert!(real.len() >= 4);
    let file = scratch.path().join("changed.toml");
    let make = |random: &mut Random| {
        let study = any(random, &real);
        changed_text(random, study)
    };
    try_for("studies", make, |text| {
        fs::write(&file, text).expect("written");
        let outcome = run(inodyne().args(["study", "check"]).arg(&file));
        assert!(matches!(outcome.code(), Some(0 | 2)) && !outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    });
}

#[test]
fn places_and_data() {
    let real = "ext4:size=1G,mkfs=-O ^filetype\nslow=xfs:size=512M,delay=5ms,mount=noatime\nbtrfs:age=3,full=80%,set=/proc/sys/vm/x=1\n\
        overlay:lower=[ext4:size=64M],upper=[tmpfs:size=1G],layers=12\ntmpfs:size=50%\nbind:of=[ext4]\nsquashfs:compression=zstd\n\
        fuse:over=[ext4],withhold-types\n/usr\next3:iops=100,bandwidth=10M\ntree:dirs=1000,fan=100,files=30,bytes=1\n\
        tree:depth=3,width=5,bytes=0..300\nscript:/tmp/x,seed=5\ntree:dirs=30,fan=4,files=~6,bytes=~900,seed=5";
    let make = |random: &mut Random| {
        let line = any(random, &real.lines().collect::<Vec<_>>()).trim().to_owned();
        changed_text(random, &line)
    };
    try_for("places", make, |text| {
        if let Ok(spec) = text.parse::<PlaceSpec>() {
            let again = spec.to_string().parse::<PlaceSpec>();
            assert_eq!(again.ok().as_ref(), Some(&spec), "{text} is shown as {spec}");
        }
        if let Ok(data) = text.parse::<DataSpec>() {
            assert_eq!(data.to_string().parse::<DataSpec>().ok(), Some(data), "{text}");
        }
    });
}

/// Changes a header of a tar archive, whose checksum is then corrected, or any byte.
fn changed_archive(random: &mut Random, archive: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 512;
    const SUM: std::ops::Range<usize> = 148..156;
    let mut bytes = archive.to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() / BLOCK) * BLOCK;
        let block = &mut bytes[at..at + BLOCK];
        // Names, mode, owner, size, kind, target of a link, magic.
        let (start, length) =
            *any(random, &[(0, 100), (100, 8), (108, 8), (124, 12), (156, 1), (157, 100), (257, 8), (345, 155)]);
        let names = [
            "../../escaped",
            "/var/tmp/escaped",
            "a/../../../escaped",
            "",
            ".",
            "a\n",
            "77777777777",
            "\u{80}\u{ff}",
            "5",
            "2",
            "1",
            "L",
            "x",
            "K",
        ];
        let new = any(random, &names).as_bytes();
        block[start..start + length].fill(0);
        block[start..start + length.min(new.len())].copy_from_slice(&new[..length.min(new.len())]);
        block[SUM].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    if random.below(4) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

#[test]
fn archives() {
    let scratch = scratch();
    let make_real = "mkdir -p r/a/b/c && cd r && echo x >a/f && ln a/f a/hard && ln -s f a/soft && ln -s ../../.. a/b/up && mkfifo a/pipe && \
        head -c 3000 /dev/zero >a/b/zeroes && touch \"$(printf '%0150d' 1)\" && tar cf ../gnu.tar . && tar --format=pax -cf ../pax.tar .";
    run(Command::new("sh").args(["-c", make_real]).current_dir(scratch.path())).ended_with(0);
    let real = ["gnu.tar", "pax.tar"].map(|name| fs::read(scratch.path().join(name)).expect("an archive"));
    let (archive, inside) = (scratch.path().join("changed.tar"), scratch.path().join("inside/place"));
    let make = |random: &mut Random| {
        let archive = any(random, &real);
        changed_archive(random, archive)
    };
    try_for("archives", make, |bytes| {
        fs::write(&archive, bytes).expect("written");
        drop(fs::remove_dir_all(&inside));
        fs::create_dir_all(&inside).expect("a directory");
        drop(DataSpec::From(archive.clone()).fill(&inside, Owner::ROOT));
        let beside = fs::read_dir(scratch.path().join("inside")).expect("there").flatten().count();
        let escaped = [scratch.path().join("escaped"), "/var/tmp/escaped".into()];
        assert!(beside == 1 && !escaped.iter().any(|path| path.symlink_metadata().is_ok()), "something is outside");
    });
}

#[test]
fn logs_of_strace() {
    let scratch = scratch();
    let log = scratch.path().join("log");
    let script = "ls -l /usr >/dev/null; find /etc -name 'x*' 2>/dev/null | wc -l; cat /no/such; (sleep 0.01 & wait)";
    let logs: Vec<String> = [&["-f", "-ttt", "-T"][..], &["-f", "-ttt", "-T", "-y", "-yy"]]
        .iter()
        .map(|options| {
            run(Command::new("strace").args(*options).arg("-o").arg(&log).args(["sh", "-c", script])).ended_with(0);
            fs::read_to_string(&log).expect("a log")
        })
        .collect();
    let (mut imported, mut all) = (0u64, 0u64);
    let make = |random: &mut Random| {
        let mut text = any(random, &logs).clone();
        for _ in 0..1 + random.below(10) {
            text = changed_text(random, &text);
        }
        text
    };
    try_for("logs", make, |text| {
        all += 1;
        let Ok(found) = inodyne_import::strace(text, "0", 0) else { return };
        imported += 1;
        let mut recording = found.recording;
        inodyne_analyse::explain(&mut recording);
        inodyne_render::text(&recording, &TextOptions { verbose: true, ..TextOptions::default() });
        inodyne_render::html(&recording);
    });
    assert!(imported * 2 > all, "only {imported} of {all} were logs still");
}
