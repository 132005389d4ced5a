//! What a machine lacks: `inodyne doctor` says it, and `inodyne run` does what doctor says. Where the kernel refuses a part of what is
//! traced, the report is complete except for that part, and says so.

mod support;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use inodyne_model::cause::Cause;
use inodyne_model::trace::Trace;
use support::programs::copy_for_everybody;
use support::{as_nobody, calls, fixture, inodyne, machine, nothing_lost, run, scratch, sh, traced};

/// What a machine is made to lack, and what doctor says of it.
struct Situation {
    name: &'static str,
    /// Words before the program and its arguments: what makes the situation.
    before: Vec<OsString>,
    /// For tests, what the kernel is to refuse.
    refuse: Option<&'static str>,
    /// The exit code of both.
    code: i32,
    /// The beginning of a line that doctor prints.
    says: &'static str,
}

fn situation(name: &'static str, code: i32, says: &'static str, before: &[&str]) -> Situation {
    Situation { name, before: before.iter().map(Into::into).collect(), refuse: None, code, says }
}

/// In a mount namespace of its own, after these lines of a shell.
fn after_mounting(name: &'static str, code: i32, says: &'static str, script: &str) -> Situation {
    situation(name, code, says, &["unshare", "--mount", "sh", "-ec", &format!("{script}; exec \"$@\""), "sh"])
}

fn refused(name: &'static str, code: i32, says: &'static str) -> Situation {
    Situation { refuse: Some(name), ..situation(name, code, says, &["env"]) }
}

fn without_call(refuse_call: &Path, call: i64, name: &'static str, code: i32, says: &'static str) -> Situation {
    let mut situation = situation(name, code, says, &[]);
    situation.before = vec![refuse_call.into(), call.to_string().into()];
    situation
}

fn situations(refuse_call: &Path) -> Vec<Situation> {
    const CAPABILITIES: &str = "missing  CAP_BPF";
    const PROGRAMS: &str = "missing  the tracing programs: ";
    vec![
        situation("as it is", 0, "ok       samples", &["env"]),
        situation(
            "an unprivileged user",
            3,
            CAPABILITIES,
            &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
        ),
        situation("without CAP_BPF", 3, CAPABILITIES, &["setpriv", "--bounding-set=-bpf"]),
        situation("without CAP_PERFMON", 3, CAPABILITIES, &["setpriv", "--bounding-set=-perfmon"]),
        situation("without CAP_SYS_ADMIN", 0, "without  CAP_SYS_ADMIN: ", &["setpriv", "--bounding-set=-sys_admin"]),
        situation(
            "root of a user namespace",
            3,
            "missing  the machine's own user",
            &["unshare", "--user", "--map-root-user"],
        ),
        situation(
            "a container of its own but for users",
            0,
            "ok       samples",
            &["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--uts", "--ipc", "--net", "--cgroup"],
        ),
        situation("no new privileges", 0, "ok       samples", &["setpriv", "--no-new-privs"]),
        situation("little memory to lock", 0, "ok       samples", &["prlimit", "--memlock=65536"]),
        after_mounting("/sys is hidden", 3, "missing  /sys: ", "mount -t tmpfs none /sys"),
        after_mounting("no type information", 3, "missing  the kernel's type", "mount -t tmpfs none /sys/kernel/btf"),
        after_mounting(
            "no tracefs",
            0,
            "ok       samples",
            "mount -t tmpfs none /sys/kernel/tracing; mount -t tmpfs none /sys/kernel/debug",
        ),
        after_mounting("symbols are hidden", 0, "ok       samples", "mount --bind /dev/null /proc/kallsyms"),
        without_call(refuse_call, libc::SYS_bpf, "no bpf", 3, PROGRAMS),
        without_call(refuse_call, libc::SYS_perf_event_open, "no perf_event_open", 0, "without  samples: "),
        refused("samples", 0, "without  samples: the kernel refused samples_take: "),
        refused("paths", 0, "without  paths: the kernel refused paths_exit: "),
        refused("dtype", 0, "without  types of directory entries: the kernel refused dtype_read_exit: "),
        // From Linux 7 on that is calls_enter_held, and lifecycle_fork_held.
        refused("calls", 3, "missing  the tracing programs: the kernel refused calls_enter"),
        refused("lifecycle", 3, "missing  the tracing programs: the kernel refused lifecycle_fork"),
        refused("switches", 3, "missing  the tracing programs: the kernel refused switches_switch: "),
    ]
}

impl Situation {
    /// This program with these arguments, in this situation.
    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let words: Vec<OsString> = self.before.iter().cloned().chain([program.into()]).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(arguments).current_dir("/");
        command.envs(self.refuse.map(|name| ("INODYNE_TEST_REFUSE", name)));
        for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER"] {
            command.env_remove(name);
        }
        command
    }
}

#[test]
fn doctor_says_what_run_does() {
    let _machine = machine();
    let scratch = scratch();
    let program = copy_for_everybody(scratch.path());
    for situation in situations(&fixture("refuse_call", scratch.path())) {
        let name = situation.name;
        let doctor = run(&mut situation.command(&program, &["doctor"]));
        let does = run(&mut situation.command(&program, &["run", "--tracer", "bpf", "--", "true"]));
        let (doctors, runs) = (doctor.text(), &does.stderr);
        assert_eq!(doctor.code(), Some(situation.code), "{name}: doctor says\n{doctors}{}", doctor.stderr);
        assert_eq!(does.code(), Some(situation.code), "{name}: run says\n{runs}");
        assert!(doctors.lines().any(|line| line.starts_with(situation.says)), "{name}: doctor says\n{doctors}");
        // The same reason is given once.
        assert!(
            doctors.lines().filter(|line| line.starts_with("missing")).count() <= 1,
            "{name}: doctor says\n{doctors}"
        );
        if situation.code != 0 {
            assert_eq!(runs.lines().count(), 1, "{name}: run says\n{runs}");
        }
    }
}

/// A program that is given no more than it takes to trace need not be run by root, in an existing directory.
#[test]
fn a_program_with_capabilities_traces_for_everybody() {
    let _machine = machine();
    let scratch = scratch();
    let program = copy_for_everybody(scratch.path());
    let mut setcap = Command::new("setcap");
    run(setcap.arg("cap_bpf,cap_perfmon=ep").arg(&program)).ended_with(0);
    let as_user = |arguments: &[&str]| run(as_nobody(Command::new(&program).args(arguments).current_dir("/")));
    let doctor = as_user(&["doctor"]).ended_with(0).text();
    assert!(doctor.contains("ok       samples"), "{doctor}");
    let argv = ["run", "--format", "json", "--", "sh", "-c", "ls / >/dev/null; sleep 0.05"];
    let trace = &as_user(&argv).ended_with(0).recording().traces[0];
    is_complete_otherwise(trace);
    let slept = trace.ledger.rows.iter().filter(|row| row.cause == Some(Cause::Sleep)).map(|row| row.ns.0).sum::<u64>();
    assert!(slept >= 45_000_000, "a wait has its cause by the kernel's functions: {:#?}", trace.ledger);
    let line = as_user(&["run", "--at", "ext4:size=16M", "--", "true"]).failed_in_one_line(3);
    assert!(line.contains("CAP_SYS_ADMIN"), "{line}");
}

/// What every trace of the command below has, whatever else is refused.
fn is_complete_otherwise(trace: &Trace) {
    nothing_lost(trace);
    assert_eq!(trace.ledger.rows.iter().map(|row| row.ns.0).sum::<u64>(), trace.ledger.wall_ns.0);
    for thread in &trace.threads {
        assert_eq!(thread.rows.iter().map(|row| row.ns.0).sum::<u64>(), thread.lifetime_ns.0, "{thread:?}");
    }
    assert!(calls(trace, "getdents64") > 0 && calls(trace, "execve") > 1, "{:#?}", trace.syscalls);
    assert!(!trace.observed.waits.is_empty() && !trace.observed.timeline.is_empty());
}

#[test]
fn what_is_refused_is_missing_and_nothing_else() {
    let _machine = machine();
    // It reads directories, computes, waits and looks paths up.
    let script = "ls / >/dev/null; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.05";
    for (refuse, feature, program) in [
        (None, "", ""),
        (Some("samples"), "samples", "samples_take: "),
        (Some("paths"), "paths", "paths_exit: "),
        (Some("files"), "files", "files_exit: "),
        (Some("dtype"), "types of directory entries", "dtype_read_exit: "),
    ] {
        let mut command = traced(&["--paths", "--files"], sh(script));
        let recording = run(command.envs(refuse.map(|name| ("INODYNE_TEST_REFUSE", name)))).ended_with(0).recording();
        let trace = &recording.traces[0];
        is_complete_otherwise(trace);
        let has = [
            ("samples", !trace.observed.samples.is_empty() && trace.observed.sample_hz > 0),
            ("paths", trace.paths.as_ref().is_some_and(|paths| !paths.looked_up.is_empty())),
            ("files", trace.files.as_ref().is_some_and(|files| !files.used.is_empty())),
            ("types of directory entries", trace.dtype.entries > 0),
        ];
        for (name, has) in has {
            assert_eq!(has, name != feature, "{name} where {refuse:?} is refused");
        }
        let told: Vec<&str> = trace.refused.iter().map(|refused| refused.feature.as_str()).collect();
        assert_eq!(told, if refuse.is_some() { vec![feature] } else { Vec::new() });
        // The verifier's own words.
        assert!(
            trace.refused.iter().all(|refused| refused.reason.starts_with(program) && refused.reason.contains("R0"))
        );
    }
}

#[test]
fn the_report_says_in_a_line_what_is_refused() {
    let _machine = machine();
    let outcome = run(inodyne().args(["run", "--", "ls", "/"]).env("INODYNE_TEST_REFUSE", "dtype")).ended_with(0);
    let text = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("No types of directory entries: the kernel refused dtype_read_exit: R0 "), "{text}");
}
