//! A log of strace becomes a recording with strace's own counts: the log ends with the table that strace makes of the same
//! run (`-C`), and that is the oracle.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use inodyne_model::ledger::RowKind;
use inodyne_model::recording::Recording;
use support::{counts, inodyne, prepare, run, scratch, strace_table};

/// Makes a log of a script, table included.
fn logged(directory: &Path, script: &str) -> String {
    let log = directory.join("strace.log");
    let strace = Command::new("strace")
        .args(["-f", "-ttt", "-T", "-C", "-y", "-o"])
        .arg(&log)
        .args(["sh", "-c", script])
        .current_dir(directory)
        .output()
        .expect("strace");
    assert!(strace.status.success(), "{strace:?}");
    String::from_utf8_lossy(&fs::read(&log).expect("the log")).into_owned()
}

fn imported(directory: &Path) -> Recording {
    let outcome = run(inodyne().args(["import", "--format", "json"]).arg(directory.join("strace.log"))).ended_with(0);
    outcome.recording()
}

/// Many processes, pipes, failures, threads where the script has them.
const BUSY: &str =
    "mkdir tree; for i in 1 2 3 4 5 6 7 8; do echo $i >tree/$i; cat tree/$i tree/missing-$i; done | sort -r | wc -l
    find tree | xargs -P 4 -n 1 stat -c %s >/dev/null; (sleep 0.05; true) & wait; rm -rf tree";

#[test]
fn counts_and_errors_are_those_of_strace() {
    let scratch = scratch();
    let log = logged(scratch.path(), BUSY);
    let recording = imported(scratch.path());
    assert_eq!(counts(&recording), strace_table(&log));
}

#[test]
fn the_path_leads_through_children_and_sums() {
    let scratch = scratch();
    logged(scratch.path(), "sh -c 'sleep 0.4; true'; true");
    let recording = imported(scratch.path());
    let ledger = &recording.traces[0].ledger;
    assert_eq!(ledger.sum(), ledger.wall_ns);
    assert_eq!(ledger.unexplained_ns, inodyne_model::Nanos::ZERO, "{ledger:?}");
    for thread in &recording.traces[0].threads {
        assert_eq!(thread.rows.iter().map(|row| row.ns).sum::<inodyne_model::Nanos>(), thread.lifetime_ns);
    }
    // The shell waited for the sleep of its child's child, and that is what is said.
    let slept = ledger.rows.iter().find(|row| row.syscall.as_deref().is_some_and(|call| call.ends_with("nanosleep")));
    let slept = slept.unwrap_or_else(|| panic!("{ledger:?}"));
    assert_eq!(slept.kind, RowKind::InCall);
    assert!(slept.ns.as_secs_f64() >= 0.4, "{slept:?}");
    // What happens inside a call is not invented anywhere.
    let kinds = ledger.rows.iter().map(|row| row.kind);
    assert!(kinds.clone().all(|kind| !matches!(kind, RowKind::User | RowKind::Kernel)), "{ledger:?}");
}

#[test]
fn a_search_path_is_found_in_a_log() {
    let scratch = scratch();
    prepare(scratch.path(), "mkdir a b c d e && touch e/{x,y}");
    let search = "import os
for n in range(400):
    for d in 'abcde':
        try: os.stat(f'{d}/module{n}.py')
        except FileNotFoundError: pass";
    fs::write(scratch.path().join("search.py"), search).unwrap();
    // Some wrap it in a shell script of their own.
    logged(scratch.path(), "PATH=/usr/bin:$PATH; exec python3 -S -E search.py");
    let recording = imported(scratch.path());
    let finding = recording.findings.iter().find(|finding| finding.id == "failed-lookups");
    let finding = finding.unwrap_or_else(|| panic!("{:?}", recording.findings));
    assert!(finding.evidence.iter().any(|line| line.contains("strace's own cost")), "{finding:?}");
}

/// Without `-o`, strace names processes only while there are more than one, and what they print tears its lines.
#[test]
fn a_log_on_a_terminal_is_read_like_one_in_a_file() {
    let scratch = scratch();
    let script = "for i in 1 2 3; do cat missing-$i; done; printf 'one\\ntwo\\n'
        (ls /etc | sort >/dev/null) & wait; sleep 0.2";
    let log = fs::File::create(scratch.path().join("strace.log")).unwrap();
    let ended = Command::new("strace")
        .args(["-f", "-ttt", "-T", "-C", "sh", "-c", script])
        .current_dir(scratch.path())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .status()
        .expect("strace");
    assert!(ended.success(), "{ended}");
    let recording = imported(scratch.path());
    let log = fs::read(scratch.path().join("strace.log")).unwrap();
    let log = String::from_utf8_lossy(&log);
    let table = log.find("% time").expect("strace's own count stands at the end");
    assert_eq!(counts(&recording), strace_table(&log[table..]));
    let ledger = &recording.traces[0].ledger;
    assert_eq!((ledger.sum(), ledger.unexplained_ns), (ledger.wall_ns, inodyne_model::Nanos::ZERO), "{ledger:?}");
    let slept = ledger.rows.iter().find(|row| row.syscall.as_deref().is_some_and(|call| call.ends_with("nanosleep")));
    assert!(slept.is_some_and(|row| row.ns.as_secs_f64() >= 0.2), "{ledger:?}");
}

/// Bug reports often have what `grep` left of a log with whole seconds, and mails quote it.
#[test]
fn syncs_of_one_second_take_their_time_one_after_the_other() {
    let scratch = scratch();
    let line = |ms: u64| format!("[pid 27] 04:38:57 fsync(9)           = 0 <0.0{ms}000>\n");
    let grepped: String = (20..32).map(line).collect();
    let quoted: String = grepped.lines().map(|line| format!("> {line}\n")).collect();
    for log in [grepped, quoted] {
        fs::write(scratch.path().join("strace.log"), log).unwrap();
        let recording = imported(scratch.path());
        let ledger = &recording.traces[0].ledger;
        assert_eq!(ledger.wall_ns, inodyne_model::Nanos((20..32).sum::<u64>() * 1_000_000));
        let [finding] = &recording.findings[..] else { panic!("{:?}", recording.findings) };
        assert_eq!(finding.id, "sync-bound");
        assert!(finding.evidence.iter().any(|line| line.contains("12 fsync, 25.5 ms each")), "{finding:?}");
        assert!(finding.cure.iter().any(|line| line.starts_with("fdatasync instead of fsync")), "{finding:?}");
    }
}

/// A log that others made (`tests/logs`): where nothing is wrong, nothing is found.
#[test]
fn a_log_of_somebody_else_has_the_counts_of_its_lines() {
    let scratch = scratch();
    let log = include_str!("logs/ls.strace");
    fs::write(scratch.path().join("strace.log"), log).unwrap();
    let recording = imported(scratch.path());
    let mut expected = support::Counts::new();
    for line in log.lines().filter(|line| line.ends_with('>')) {
        let call = line.split(' ').nth(2).unwrap().split('(').next().unwrap();
        let (calls, errors) = expected.entry(call.to_owned()).or_default();
        *calls += 1;
        *errors += u64::from(line.contains(" = -1 E"));
    }
    assert_eq!(counts(&recording), expected);
    assert!(recording.findings.is_empty(), "{:?}", recording.findings);
    let ledger = &recording.traces[0].ledger;
    assert_eq!((ledger.sum(), ledger.unexplained_ns), (ledger.wall_ns, inodyne_model::Nanos::ZERO), "{ledger:?}");
}

/// What `find d -size +1` does in many directories in which files have the same names: it looks at each of them once.
#[test]
fn a_name_in_many_directories_is_not_looked_up_again_and_again() {
    let scratch = scratch();
    let found = |directory: &dyn Fn(usize) -> String| {
        let line = |at: usize| {
            let (name, directory) = (["f", "h", "b"][at % 3], directory(at / 3));
            let us = 1_600 * at;
            format!(
                "7 1700000100.{us:06} newfstatat({directory}, \"{name}\", {{st_mode=S_IFREG}}, 0) = 0 <0.000700>\n\
                 7 1700000100.{:06} newfstatat(3, \"\", {{st_mode=S_IFDIR}}, AT_EMPTY_PATH) = 0 <0.000700>\n",
                us + 800
            )
        };
        fs::write(scratch.path().join("strace.log"), (0..600).map(line).collect::<String>()).unwrap();
        imported(scratch.path()).findings.into_iter().map(|finding| finding.id).collect::<Vec<_>>()
    };
    assert!(!found(&|at| format!("4</d/{at}>")).contains(&"repeated-stat".to_owned()));
    assert!(!found(&|_| "4".to_owned()).contains(&"repeated-stat".to_owned()));
    assert!(found(&|at| format!("4</d/{}>", at % 2)).contains(&"repeated-stat".to_owned()));
}

/// `strace -p` of a server: the thread that strace names first is not the one that matters.
#[test]
fn of_processes_that_were_running_the_ledger_is_that_of_the_one_that_lives_longest() {
    let scratch = scratch();
    let log = "4587 1700000100.0 close(3) = 0 <0.1>\n4534 1700000100.1 read(0, \"\", 9) = 0 <0.5>
4587 1700000101.0 exit(0) = ?\n4587 1700000101.0 +++ exited with 0 +++
4534 1700000101.5 fsync(3) = 0 <50.000000>\n4534 1700000160.5 close(3) = 0 <0.1>\n";
    fs::write(scratch.path().join("strace.log"), log).unwrap();
    let recording = imported(scratch.path());
    let ledger = &recording.traces[0].ledger;
    assert_eq!((ledger.sum(), ledger.wall_ns), (ledger.wall_ns, inodyne_model::Nanos(60_600_000_000)), "{ledger:?}");
    let synced = ledger.rows.iter().find(|row| row.syscall.as_deref() == Some("fsync"));
    assert_eq!(synced.map(|row| row.ns), Some(inodyne_model::Nanos(50_000_000_000)), "{ledger:?}");
}

#[test]
fn what_is_no_log_is_refused_in_one_line() {
    let scratch = scratch();
    let log = scratch.path().join("strace.log");
    for (text, said) in [
        ("", "no call in it"),
        ("hello\nworld\n", "no call in it"),
        ("close(3) = 0\n", "no times"),
        ("12:00:00.000001 close(3) = 0\n12:00:00.000002 close(4) = 0\n", "no durations"),
    ] {
        fs::write(&log, text).unwrap();
        let outcome = run(inodyne().arg("import").arg(&log)).ended_with(2);
        assert!(outcome.stderr.contains(said) && outcome.stderr.lines().count() == 1, "{text:?}: {}", outcome.stderr);
    }
    run(inodyne().args(["import", "/nowhere/log"])).ended_with(2);
}
