//! Whom to follow, from what the user wrote to pids; and what is wrong with it, in one line.

mod cgroups;
mod container;
mod joining;
mod unit;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use inodyne_trace::Whom;

use crate::failure::{ExitStatus, Failure};
pub use joining::join_all;

/// Whom to follow.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TargetOptions {
    /// A process, with all its threads; may be given several times
    #[arg(long = "pid", value_name = "PID", help_heading = "Processes")]
    pub pids: Vec<u32>,
    /// All processes with this command name, as ps -o comm shows it
    #[arg(long, value_name = "COMM", help_heading = "Processes")]
    pub name: Option<String>,
    /// All processes in a control group and in those below it, including those that enter it later
    #[arg(long, value_name = "PATH", help_heading = "Processes")]
    pub cgroup: Option<PathBuf>,
    /// All processes of a systemd unit; without a kind (.service, .slice, .scope), a service is meant
    #[arg(long, value_name = "NAME", help_heading = "Processes")]
    pub unit: Option<String>,
    /// All processes of a Docker, Podman, Kubernetes, LXC or systemd-nspawn container
    #[arg(long, value_name = "NAME|ID", help_heading = "Processes")]
    pub container: Option<String>,
    /// All processes except inodyne itself
    #[arg(long, help_heading = "Processes")]
    pub all: bool,
}

/// The kernel cuts a command name at this many bytes (TASK_COMM_LEN, include/linux/sched.h).
const LONGEST_NAME: usize = 15;

/// Whom to follow.
#[derive(Debug)]
pub enum Target {
    Pids(BTreeMap<u32, Process>),
    Name(String),
    /// The processes in any of these control groups, and what reports call the groups.
    Cgroups {
        label: String,
        paths: Vec<PathBuf>,
    },
    All,
}

/// What tells a process from a later one with the same pid.
#[derive(Debug)]
pub struct Process {
    /// Since the machine was started, in ticks; none if it had ended by then.
    started: Option<u64>,
    comm: String,
}

impl Process {
    fn of(pid: u32) -> Process {
        Process { started: started(pid), comm: String::from_utf8_lossy(&comm(pid)).into_owned() }
    }
}

fn usage(message: impl std::fmt::Display) -> Failure {
    Failure::new(ExitStatus::Usage, message)
}

impl TargetOptions {
    /// Whether any target is given.
    pub fn is_given(&self) -> bool {
        let TargetOptions { pids, name, cgroup, unit, container, all } = self;
        !pids.is_empty() || *all || name.is_some() || cgroup.is_some() || unit.is_some() || container.is_some()
    }
}

impl Target {
    /// What the options say.
    ///
    /// # Errors
    /// What was named is not a process, control group, unit or container.
    pub fn new(options: &TargetOptions) -> Result<Target, Failure> {
        if let Some(path) = &options.cgroup {
            let path = cgroup(path)?;
            return Ok(Target::Cgroups { label: format!("cgroup {}", path.display()), paths: vec![path] });
        }
        if let Some(name) = &options.unit {
            let paths = unit::groups(name).map_err(|why| usage(format_args!("--unit {name}: {why}")))?;
            return Ok(Target::Cgroups { label: format!("unit {}", unit::full(name)), paths });
        }
        if let Some(name) = &options.container {
            let paths = container::groups(name).map_err(|why| usage(format_args!("--container {name}: {why}")))?;
            return Ok(Target::Cgroups { label: format!("container {name}"), paths });
        }
        if let Some(name) = &options.name {
            return Ok(Target::Name(name.clone()));
        }
        if options.all {
            return Ok(Target::All);
        }
        let processes = options.pids.iter().map(|pid| check_pid(*pid).map(|()| (*pid, Process::of(*pid))));
        Ok(Target::Pids(processes.collect::<Result<_, _>>()?))
    }

    /// The processes as they are now.
    ///
    /// # Errors
    /// No process has the name, all of those with the pids have ended, or the control group is gone.
    pub fn whom(&self) -> Result<Whom, Failure> {
        let pids = match self {
            Target::All => return Ok(Whom::All),
            Target::Pids(processes) => {
                let is_there =
                    |(pid, process): &(&u32, &Process)| process.started.is_some() && started(**pid) == process.started;
                processes.iter().filter(is_there).map(|(pid, _)| *pid).collect()
            }
            Target::Name(name) => named(name),
            Target::Cgroups { paths, .. } => {
                let mut pids = BTreeSet::new();
                let gone = |path: &PathBuf, error| usage(format_args!("{}: {error}", path.display()));
                let read =
                    paths.iter().map(|path| cgroups::members(path, &mut pids).map_err(|error| gone(path, error)));
                // While one of them is there, the others may have gone.
                match read.collect::<Vec<_>>().into_iter().min_by_key(Result::is_err) {
                    Some(Err(gone)) => return Err(gone),
                    _ => pids,
                }
            }
        };
        match self {
            Target::Name(name) if pids.is_empty() => {
                return Err(usage(format_args!("no process is called {name}: names are those of ps -o comm")));
            }
            Target::Pids(_) if pids.is_empty() => {
                return Err(usage(format_args!("nobody is left of {}", self.label())));
            }
            _ => {}
        }
        Ok(Whom::Processes(pids.into_iter().collect()))
    }

    /// These, and those that are followed already: their children, whose names and control groups may differ.
    ///
    /// # Errors
    /// There is no process, and none can come.
    pub fn whom_with(&self, followed: BTreeSet<u32>) -> Result<Whom, Failure> {
        let own = match self.whom() {
            Ok(Whom::Processes(own)) => own,
            Ok(Whom::All) => return Ok(Whom::All),
            Err(nobody) if followed.is_empty() && !self.may_grow() => return Err(nobody),
            Err(_) => Vec::new(),
        };
        Ok(Whom::Processes(followed.into_iter().chain(own).collect::<BTreeSet<u32>>().into_iter().collect()))
    }

    /// Whether processes other than the children of those that are followed may join later.
    pub fn may_grow(&self) -> bool {
        matches!(self, Target::Cgroups { .. })
    }

    /// What reports call it: `pid 4711 (postgres)`.
    pub fn label(&self) -> String {
        match self {
            Target::Pids(processes) => {
                let words: Vec<String> =
                    processes.iter().map(|(pid, process)| format!("{pid} ({})", process.comm)).collect();
                format!("pid {}", words.join(", "))
            }
            Target::Name(name) => format!("all {name}"),
            Target::Cgroups { label, .. } => label.clone(),
            Target::All => "all processes".to_owned(),
        }
    }
}

/// Checks that this is a process that has not ended, and not a thread of another process, a kernel thread, or inodyne itself.
fn check_pid(pid: u32) -> Result<(), Failure> {
    let status = fs::read(format!("/proc/{pid}/status")).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => Failure::new(ExitStatus::Lacking, format_args!("--pid {pid}: {error}")),
        _ => usage(format_args!("--pid {pid}: there is no such process")),
    })?;
    let status = String::from_utf8_lossy(&status);
    let field = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.map(|value| value.trim_start_matches(':').trim()).unwrap_or_default()
    };
    let process: u32 = field("Tgid").parse().unwrap_or(pid);
    if process != pid {
        return Err(usage(format_args!("--pid {pid}: this is a thread of process {process}: use --pid {process}")));
    }
    if field("State").starts_with(['Z', 'X']) && threads(pid) < 2 {
        return Err(usage(format_args!("--pid {pid}: the process has ended")));
    }
    if pid == std::process::id() {
        return Err(usage(format_args!("--pid {pid}: this is inodyne itself")));
    }
    // Only the kernel's own threads have no memory.
    if field("VmSize").is_empty() && !field("State").starts_with(['Z', 'X']) {
        return Err(usage(format_args!("--pid {pid}: this is a thread of the kernel, which makes no calls")));
    }
    Ok(())
}

fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Its name in bytes: it need not be UTF-8, and where the kernel has cut it, the last character may be half there.
fn comm(pid: u32) -> Vec<u8> {
    let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.strip_suffix(b"\n").unwrap_or(&comm).to_vec()
}

/// When a process was started (proc_pid_stat(5), starttime). Its name, which may have spaces and parentheses, comes before.
fn started(pid: u32) -> Option<u64> {
    const FIELD: usize = 22;
    const AFTER_NAME: usize = 3;
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_whitespace().nth(FIELD - AFTER_NAME)?.parse().ok()
}

/// The processes whose first thread has this name.
fn named(name: &str) -> BTreeSet<u32> {
    let cut = name.as_bytes().get(..LONGEST_NAME).unwrap_or(name.as_bytes());
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id() && comm(*pid) == cut).collect()
}

/// The directory of a control group, by its path or by its path below the usual mount point.
fn cgroup(path: &Path) -> Result<PathBuf, Failure> {
    cgroups::at(path).ok_or_else(|| {
        let why = if path.exists() { "is not a control group" } else { "there is no such control group" };
        usage(format_args!("--cgroup {}: {why}; they are below {}", path.display(), cgroups::CGROUPS))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn what_cannot_be_followed_is_told_in_a_line() {
        let says = |result: Result<(), Failure>| result.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(says(check_pid(0)).contains("no such process"));
        assert!(says(check_pid(std::process::id())).contains("inodyne itself"));
        assert!(says(cgroup(Path::new("/proc")).map(drop)).contains("is not a control group"));
        assert!(says(cgroup(Path::new("no/such/one")).map(drop)).contains("there is no such control group"));
        let nobody = Target::Name("nobody is called that".to_owned());
        assert!(says(nobody.whom().map(drop)).contains("no process is called"));
    }

    #[test]
    fn who_is_followed_already_stays_whatever_has_become_of_the_others() {
        let gone = Target::Cgroups { label: "gone".to_owned(), paths: vec![PathBuf::from("/no/such/group")] };
        let nobody = Target::Name("nobody is called that".to_owned());
        let with = |target: &Target, followed: &[u32]| target.whom_with(followed.iter().copied().collect()).ok();
        let processes = |pids: &[u32]| Some(Whom::Processes(pids.to_vec()));
        assert_eq!(with(&nobody, &[7, 9]), processes(&[7, 9]));
        assert_eq!(with(&nobody, &[]), None);
        assert_eq!(with(&gone, &[7]), processes(&[7]));
        assert_eq!(with(&gone, &[]), processes(&[]));
        assert_eq!(with(&Target::All, &[7]), Some(Whom::All));
    }

    #[test]
    fn a_process_whose_name_was_cut_within_a_character_is_found_by_its_pid_and_by_its_name() {
        // As many bytes as the kernel keeps, and one more.
        let name = format!("{}é", "n".repeat(LONGEST_NAME - 1));
        let script = "printf %s \"$0\" >/proc/$$/comm && echo named && read -r end";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script, &name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        let mut said = [0; 6];
        child.stdout.take().expect("a pipe").read_exact(&mut said).expect("it says that it has its name");
        let pid = child.id();
        assert!(check_pid(pid).is_ok());
        let target = Target::Pids(BTreeMap::from([(pid, Process::of(pid))]));
        assert_eq!(target.whom().ok(), Some(Whom::Processes(vec![pid])));
        assert_eq!(target.label(), format!("pid {pid} ({}\u{fffd})", "n".repeat(LONGEST_NAME - 1)));
        assert_eq!(Target::Name(name).whom().ok(), Some(Whom::Processes(vec![pid])));
        // It reads its end.
        drop(child.stdin.take());
        child.wait().expect("it has ended");
    }

    #[test]
    fn a_later_process_with_the_same_pid_is_another_one() {
        let own = std::process::id();
        let target = |process| Target::Pids(BTreeMap::from([(own, process)]));
        let (itself, earlier) =
            (target(Process::of(own)), target(Process { started: Some(0), comm: "earlier".to_owned() }));
        assert_eq!(itself.whom().ok(), Some(Whom::Processes(vec![own])));
        assert!(earlier.whom().is_err_and(|told| told.to_string().contains("nobody is left of pid")));
        assert_eq!(earlier.label(), format!("pid {own} (earlier)"));
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("a child");
        let target = Target::Pids(BTreeMap::from([(child.id(), Process::of(child.id()))]));
        assert_eq!(target.whom_with(BTreeSet::from([7])).ok(), Some(Whom::Processes([7, child.id()].into())));
        child.kill().expect("it can be killed");
        child.wait().expect("it has ended");
        assert!(target.whom().is_err());
        assert_eq!(target.whom_with(BTreeSet::from([7])).ok(), Some(Whom::Processes(vec![7])));
    }
}
