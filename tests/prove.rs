//! Predictions and their scores: stated first, kept in the recording, refused where nothing can be tried.

mod support;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use inodyne_model::Nanos;
use inodyne_model::finding::Score;
use inodyne_model::recording::Recording;
use inodyne_model::run::median;
use support::{Outcome, fixture, inodyne, load, machine, run, scratch, stolen_so_far};

/// A trouble, and a cure that is tried.
struct Cured {
    id: &'static str,
    options: &'static [&'static str],
    /// `FIXTURE` stands for the compiled fixture of the finding.
    command: String,
    instead: Option<&'static str>,
}

/// The seven whose predictions must come true. The files are named one by one, so that the command can be split.
fn seven() -> [Cured; 7] {
    let files: Vec<String> = (0..1500).map(|n| format!("d0/f{n}")).collect();
    let cured = |id, options, command: &str, instead| Cured { id, options, command: command.to_owned(), instead };
    [
        cured(
            "dtype-missing",
            // Without access times: only the first of the recorded runs would update them, but each of the proving ones.
            &[
                "-n",
                "5",
                "--at",
                "ext4:size=1G,mkfs=-O ^filetype,mount=noatime",
                "--data",
                "tree:dirs=1000,files=30,bytes=1",
                "--cache",
                "warm",
            ],
            "find .",
            None,
        ),
        cured(
            "cold-metadata",
            &["-n", "5", "--at", "ext4:size=1G", "--data", "tree:dirs=2000,files=10,bytes=1", "--cache", "cold"],
            "find . -size +1k",
            None,
        ),
        cured("sync-bound", &["-n", "5", "--at", "ext4:size=1G"], "FIXTURE 300", None),
        // Once only: from the second time on everything is copied already.
        cured(
            "copy-up",
            &["--at", "overlay:lower=ext4:size=1G", "--data", "tree:dirs=3,files=200,bytes=4000"],
            "chown -R 1 .",
            None,
        ),
        cured(
            "single-stream",
            &["-n", "5", "--at", "ext4:size=1G", "--data", "tree:dirs=1,files=1500,bytes=16384", "--cache", "cold"],
            &format!("FIXTURE {}", files.join(" ")),
            None,
        ),
        cured("failed-lookups", &["-n", "5", "--at", "ext4:size=256M"], "FIXTURE 2000 60", Some("FIXTURE 2000 60 59")),
        // The kernel was told of everything a second ago, and no longer trusts it.
        cured(
            "round-trips",
            &[
                "-n",
                "5",
                "--at",
                "fuse:tmpfs",
                "--data",
                "tree:dirs=20,files=200,bytes=1",
                "--prepare",
                "find . -size +1k >/dev/null; sleep 1.1",
            ],
            "find . -size +1k",
            None,
        ),
    ]
}

/// How far the interval of the saving may reach to either side, as a part of the saving.
const WIDEST: f64 = 0.25;

/// How far two runs may lie apart, as twice the median deviation, for the machine to be quiet. Where it is not, the interval says so
/// by being wide, and has to.
const QUIET: f64 = 0.12;

/// How many pairs are tried first, and how many if those do not decide.
const PAIRS: [&str; 2] = ["6", "20"];

/// Said of a trial during which others were busy: what it measured is no proof of anything.
const DISTURBED: &str = "others were busy meanwhile";

/// A trial, unless others disturb it.
fn tried(cured: &Cured, programs: &Path) -> (Score, String) {
    let since = Since::now();
    match trial(cured, programs) {
        (Score::Otherwise, told) if since.was_busy() => (Score::Undecided, format!("{DISTURBED}:\n{told}")),
        tried => tried,
    }
}

/// One trial: what it says of the prediction, and the report. A prediction whose interval is too wide to mean something is none, unless
/// the runs themselves lay far apart.
fn trial(cured: &Cured, programs: &Path) -> (Score, String) {
    let file = programs.join(format!("{}.inodyne", cured.id));
    let program = match cured.command.contains("FIXTURE") {
        true => fixture(&format!("findings/{}", cured.id), programs).display().to_string(),
        false => String::new(),
    };
    let mut command = inodyne();
    command.args(["run", "-o"]).arg(&file).args(cured.options).arg("--");
    command.args(cured.command.replace("FIXTURE", &program).split(' '));
    run(&mut command).ended_with(0);
    // What others on the host take may be most of a traced run, and then the finding is not there to be proved.
    let recorded = load(&file).expect("it was written");
    let doubts: Vec<_> = recorded.traces.iter().flat_map(|trace| &trace.doubts).collect();
    if !doubts.is_empty() && !recorded.findings.iter().any(|finding| finding.id == cured.id) {
        return (Score::Undecided, format!("{DISTURBED}, and {} is not found: {doubts:?}", cured.id));
    }
    let instead = cured.instead.map(|instead| instead.replace("FIXTURE", &program));
    let mut told = String::new();
    for pairs in PAIRS {
        let mut more = vec![cured.id, "-n", pairs];
        more.extend(instead.iter().flat_map(|instead| ["--instead", instead]));
        told = prove(&file, &more).ended_with(0).text();
        let recording = load(&file).expect("it was written again");
        let finding = recording.findings.iter().find(|finding| finding.id == cured.id).expect("it was proved");
        let [low, likely, high] = finding.predicted.savings();
        let is_narrow = (high - likely).max(likely - low) <= likely * WIDEST;
        if !recording.traces[finding.trace].doubts.is_empty() {
            return (Score::Undecided, told);
        }
        match finding.proved.as_ref().expect("the score is kept").score(&finding.predicted) {
            Score::Undecided => {}
            Score::AsPredicted if !is_narrow && was_quiet(&recording) => return (Score::Otherwise, told),
            score => return (score, told),
        }
    }
    (Score::Undecided, told)
}

/// Whether the untraced runs of a recording lie close together.
fn was_quiet(recording: &Recording) -> bool {
    let mut walls = recording.untraced_walls(recording.traces[0].key());
    let Some(middle) = median(&walls) else { return true };
    walls.iter_mut().for_each(|wall| *wall = Nanos(wall.0.abs_diff(middle.0)));
    walls.sort_unstable();
    median(&walls).unwrap_or_default().share_of(middle) * 2.0 <= QUIET
}

/// CPU time since the machine started, in ticks: what all used, and what this process and its children did.
fn cpu_ticks() -> [u64; 2] {
    let sum = |text: &str, skip: usize, take: usize| -> u64 {
        text.split_whitespace().skip(skip).take(take).map(|word| word.parse::<u64>().expect("a count of ticks")).sum()
    };
    let read = |file| fs::read_to_string(file).expect("/proc is mounted");
    // `cpu user nice system idle …`; without idle times, interrupts are left to the machine.
    let all = sum(&read("/proc/stat"), 1, 3);
    let own = read("/proc/self/stat");
    // utime, stime and those of children are the 14th to 17th field; the second may hold blanks and ends with the last bracket.
    let fields = own.rsplit_once(')').expect("a command name").1;
    [all, sum(fields, 11, 4)]
}

/// The part of a machine's CPUs that others may use while it still counts as quiet: kernel threads that serve the command count as others.
const OTHERS: f64 = 0.25;
/// The same for others on the host. They come in bursts, and a recording takes exception to less than others may use.
const STOLEN: f64 = 0.03;

/// How much of the machine had been used at some instant.
struct Since {
    at: Instant,
    ticks: [u64; 2],
    stolen: Nanos,
}

impl Since {
    fn now() -> Since {
        Since { at: Instant::now(), ticks: cpu_ticks(), stolen: stolen_so_far() }
    }

    /// What part of the machine others have used since then, and what part others on the host.
    fn others(&self) -> [f64; 2] {
        let now = Since::now();
        let [all, own] = [0, 1].map(|which| (now.ticks[which] - self.ticks[which]) as f64);
        let stolen = now.stolen.saturating_sub(self.stolen).as_secs_f64();
        let cpus = thread::available_parallelism().expect("it is known").get() as f64;
        [(all - own) / 100.0, stolen].map(|seconds| seconds / self.at.elapsed().as_secs_f64() / cpus)
    }

    fn was_busy(&self) -> bool {
        let [others, stolen] = self.others();
        others > OTHERS || stolen > STOLEN
    }
}

#[test]
fn six_of_seven_predictions_come_true() {
    let (_machine, programs) = (machine(), scratch());
    let since = Since::now();
    let tried: Vec<(Score, String)> = seven().iter().map(|cured| tried(cured, programs.path())).collect();
    let [others, stolen] = since.others();
    let told = |score| tried.iter().filter(|one| one.0 == score).map(|one| one.1.as_str()).collect::<Vec<_>>();
    let refuted = told(Score::Otherwise);
    assert!(refuted.len() <= 1, "these did not come true:\n{}", refuted.join("\n"));
    // A recording says so if its machine was busy with other things, and nothing is scored.
    let undecided = told(Score::Undecided);
    let is_told = |told: &&str| ["not scored", "not decided", DISTURBED].iter().any(|words| told.contains(words));
    assert!(undecided.iter().all(is_told), "{undecided:?}");
    let most = if others > OTHERS || stolen > STOLEN { undecided.len() } else { 2 };
    let undecided_told = undecided.join("\n");
    assert!(
        undecided.len() <= most,
        "others used {others:.2} of the machine, {stolen:.2} were stolen; undecided:\n{undecided_told}"
    );
}

/// A place where a cold command waits for the device, however busy the machine is.
const SLOW: &str = "ext4:size=256M,delay=3ms";

/// Makes a recording of a shell command.
fn record(file: &Path, options: &[&str], script: &str) {
    let mut command = inodyne();
    command.args(["run", "-o"]).arg(file).args(options).args(["--", "sh", "-c", &format!("exec {script}")]);
    run(&mut command).ended_with(0);
}

fn prove(file: &Path, more: &[&str]) -> Outcome {
    run(inodyne().args(["prove", "--yes"]).arg(file).args(more))
}

#[test]
fn a_prediction_is_stated_then_scored_then_kept() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("find.inodyne");
    let data = "tree:dirs=300,files=30,bytes=1";
    record(&file, &["--at", "slow=ext4:size=256M,mkfs=-O ^filetype", "--data", data, "--cache", "warm"], "find .");
    let told = prove(&file, &["dtype-missing", "-n", "6"]).ended_with(0).text();
    // On a machine that others use, too, there may be doubts.
    let lines: Vec<&str> = told.lines().map(str::trim).filter(|line| !line.starts_with("doubtful ")).collect();
    let [title, command, filled, predicted, trying, measured] = lines[..] else { panic!("{told}") };
    assert!(filled.starts_with("data ") && filled.contains("tree:dirs=300,"), "{told}");
    assert!(title.starts_with("dtype-missing: ") && predicted.starts_with("predicted "), "{told}");
    assert!(command.contains("exec find .") && command.contains("ext4:size=256M,mkfs=-O ^filetype"), "{told}");
    assert!(trying.contains("-O filetype instead of"), "{told}");
    assert!(measured.starts_with("measured ") && measured.contains("6 pairs"), "{told}");
    let recording = load(&file).expect("it was written again");
    let finding = recording.findings.iter().find(|finding| finding.id == "dtype-missing").expect("it is still there");
    let proof = finding.proved.as_ref().expect("the score is kept");
    assert_eq!(proof.pairs, 6);
    assert!(proof.ratio < 0.9, "types make find faster: {proof:?}");
    // Shown again, with its score.
    let shown = run(inodyne().args(["show", "-v"]).arg(&file)).ended_with(0).text();
    assert!(shown.contains("proved ") && shown.contains("6 pairs of runs"), "{shown}");
}

/// What comes before each run removes the directory of the recording.
#[test]
fn a_score_that_cannot_be_saved_is_told_and_kept_elsewhere() {
    let (_machine, scratch) = (machine(), scratch());
    let (file, gone) = (scratch.path().join("find.inodyne"), scratch.path().join("gone"));
    record(&file, &["--at", SLOW, "--data", "tree:dirs=80,files=5,bytes=1", "--cache", "cold"], "find . -size +1k");
    fs::create_dir(&gone).expect("made");
    let (output, removes) = (gone.join("x.inodyne").display().to_string(), format!("rm -rf {}", gone.display()));
    let mut command = inodyne();
    command.args(["prove", "--yes", "-n", "1", "--prepare", &removes, "-o", &output]).arg(&file).arg("cold-metadata");
    let outcome = run(command.env("TMPDIR", scratch.path())).ended_with(3);
    assert!(outcome.text().contains("  measured   "), "{}", outcome.text());
    let (_, elsewhere) = outcome.stderr.trim_end().rsplit_once("the recording is in ").expect("it says where");
    let recording = load(Path::new(elsewhere)).expect("a recording");
    assert!(recording.findings.iter().any(|finding| finding.proved.is_some()));
}

#[test]
fn another_command_can_be_tried_instead() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("findings/failed-lookups", scratch.path()).display().to_string();
    let file = scratch.path().join("lookups.inodyne");
    record(&file, &["--at", "tmpfs"], &format!("{program} 500 40"));
    let refused = prove(&file, &["failed-lookups"]).failed_in_one_line(2);
    assert!(refused.contains("--instead"), "{refused}");
    let instead = format!("{program} 500 40 39");
    let told = prove(&file, &["failed-lookups", "--instead", &instead, "-n", "3"]).ended_with(0).text();
    assert!(told.contains("trying     instead: "), "{told}");
    let other = prove(&file, &["failed-lookups", "--instead", "false", "-n", "1"]).failed_in_one_line(1);
    assert!(other.contains("ended otherwise"), "{other}");
}

#[test]
fn what_no_place_can_cure_is_refused() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("dsync.inodyne");
    record(&file, &["--at", "ext4:size=256M"], "dd if=/dev/zero of=file bs=4k count=50 oflag=dsync status=none");
    assert!(prove(&file, &["sync-bound"]).failed_in_one_line(2).contains("synchronous themselves"));
}

#[test]
fn a_users_directory_is_never_tried_in() {
    let (_machine, scratch) = (machine(), scratch());
    support::prepare(scratch.path(), "mkdir place");
    let program = fixture("findings/small-io", scratch.path()).display().to_string();
    let file = scratch.path().join("here.inodyne");
    let place = scratch.path().join("place").display().to_string();
    record(&file, &["--at", &place], &format!("{program} 100000"));
    let refused = prove(&file, &["--instead", "true"]).failed_in_one_line(2);
    assert!(refused.contains("--at"), "{refused}");
    let told = prove(&file, &["--instead", "head -c 100000 /dev/zero >file", "--at", "tmpfs", "-n", "2"]).ended_with(0);
    assert!(told.text().contains("small-io"), "{}", told.text());
}

#[test]
fn what_is_not_there_is_said() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("sleep.inodyne");
    // So long that its start does not count, not even on a busy machine whose disk is busy too: there it took 0.2 s.
    record(&file, &["--at", "tmpfs"], "sleep 5");
    assert!(prove(&file, &["copy-up"]).failed_in_one_line(2).contains("fs-not-to-blame"));
    assert!(prove(&file, &[]).failed_in_one_line(2).contains("has no cure"));
}

/// What is tried is what was recorded: the same command in the same directory, with the same variables, prepared and cleaned up
/// after. Each run checks that itself, and leaves a line where this test can read it.
#[test]
fn the_conditions_of_the_recording_are_those_of_the_trial() {
    let (_machine, scratch) = (machine(), scratch());
    let (file, log) = (scratch.path().join("conditions.inodyne"), scratch.path().join("log"));
    let script = format!(
        "test \"$PWD\" = \"$(cd .. && pwd)/below\" && test \"$WORD\" = 'two words' && test -e ../prepared || exit 7; \
         echo ran >>{log}; exec find . -size +1k",
        log = log.display()
    );
    let prepare = format!("mkdir -p below && touch prepared && echo prepare >>{}", log.display());
    let cleanup = format!("echo cleanup >>{}", log.display());
    let mut command = inodyne();
    command.args(["run", "-o"]).arg(&file).args(["--at", SLOW, "--data", "tree:dirs=80,files=5,bytes=1"]);
    command.args(["--cache", "cold", "--cwd", "below", "--env", "WORD=two words"]);
    command.args(["--prepare", &format!("{prepare}; mv d* below/ 2>/dev/null; true"), "--cleanup", &cleanup]);
    run(command.args(["--", "sh", "-c", &script])).ended_with(0);
    let recorded = load(&file).expect("it was written");
    assert_eq!(recorded.commands[0].cwd.as_deref(), Some(Path::new("below")));
    std::fs::write(&log, "").expect("a log");
    let told = prove(&file, &["cold-metadata", "-n", "4", "--seed", "5"]).ended_with(0).text();
    for part in
        ["in         below", "with       WORD='two words'", "prepare    mkdir -p below", "clean up   echo cleanup"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    // One of each that does not count, then four pairs: each prepared, run and cleaned up after.
    let lines = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 3 * 2 * (1 + 4), "{lines:?}");
    assert!(lines.chunks(3).all(|run| run == ["prepare", "ran", "cleanup"]), "{lines:?}");
    let proved = load(&file).expect("it was written again");
    let finding = proved.findings.iter().find(|finding| finding.id == "cold-metadata").expect("it is still there");
    assert_eq!(finding.proved.as_ref().map(|proof| proof.pairs), Some(4));
}

#[test]
fn what_a_recording_says_is_run_only_where_that_is_wanted() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("find.inodyne");
    let data = "tree:dirs=80,files=5,bytes=1";
    record(&file, &["--at", SLOW, "--data", data, "--cache", "cold"], "find . -size +1k");
    let before = std::fs::read(&file).expect("a recording");
    // The label may say anything: what is shown is what runs.
    let mut recording = load(&file).expect("it was written");
    recording.commands[0].label = "harmless".to_owned();
    inodyne_recording::save(&recording, &file).expect("it can be written");
    let outcome = run(inodyne().arg("prove").arg(&file).args(["cold-metadata", "-n", "1"]));
    assert!(outcome.stderr.contains("--yes") && outcome.text().contains("exec find . -size +1k"), "{}", outcome.stderr);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(load(&file).expect("still whole").findings.iter().all(|finding| finding.proved.is_none()));
    // Settings that have nothing to do with files are not for a recording to change.
    std::fs::write(&file, before).expect("as it was");
    let mut recording = load(&file).expect("it was written");
    recording.places[0].spec = Some(format!("{SLOW},set=/proc/sys/kernel/panic=1"));
    inodyne_recording::save(&recording, &file).expect("it can be written");
    let refused = prove(&file, &["cold-metadata", "-n", "1"]).failed_in_one_line(2);
    assert!(refused.contains("/proc/sys/kernel/panic"), "{refused}");
}
