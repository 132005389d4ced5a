//! `inodyne doctor`: what this machine can do, what is lost where it cannot, and how to get it. Also what its disks can do, as far as
//! that has been measured.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use inodyne_disk::{DiskError, Identity, Measurement, Plan, kept};
use inodyne_model::disk_limits::DiskLimits;
use inodyne_render::{bytes, disk_limits, escaped};
use inodyne_trace::capability::{self, Check};

use crate::failure::{ExitStatus, Failure};
use crate::options::{self, time};
use crate::say::show;
use crate::{disks, report};

/// Arguments of `inodyne doctor`.
#[derive(Debug, Args)]
#[command(after_long_help = "  inodyne doctor\n  inodyne doctor --device /srv\n\n\
    With --device it makes a file without a name in DIR and has fio write and read it past the page cache; nothing else is written.\n\
    What it finds is kept in $XDG_STATE_HOME/inodyne/disks (~/.local/state), and reports say how much of it a command made use of.\n\n\
    The exit code is 0; 2 DIR lies on no disk, 3 the machine lacks something.")]
pub struct DoctorArguments {
    /// Measure with fio what the disk below this directory can do, and keep that for reports
    #[arg(long, value_name = "DIR")]
    pub device: Option<PathBuf>,
    /// With --device: how long each of six steps may take: 500ms, 10s
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "2s", requires = "device")]
    pub each: Duration,
}

/// Runs the command: 0 where `inodyne run` can trace with the BPF programs, otherwise 3.
pub fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    match &arguments.device {
        Some(directory) => measure(directory, arguments.each),
        None => examine(),
    }
}

/// Measures the disk below a directory, and keeps what it can do.
fn measure(directory: &Path, each: Duration) -> Result<ExitCode, Failure> {
    let plan = Plan::new(directory, each)?;
    let into = kept::directory().ok_or(DiskError::Nowhere)?;
    let Identity { name, size_bytes, .. } = plan.disk();
    crate::say::say!(
        "inodyne: measuring {name} ({}) in {}, {}: takes about {:.0} s, writes up to {} to a file of up to {} there that has no name",
        bytes(*size_bytes),
        escaped(&directory.display().to_string()),
        escaped(plan.fs()),
        plan.longest().as_secs_f64().ceil(),
        bytes(plan.most_written()),
        bytes(plan.file_bytes()),
    );
    let shows = report::shows_progress();
    let limits = plan.run(&mut |measurement: Measurement| {
        if shows {
            crate::say::say!("inodyne: {}", measurement.words());
        }
    })?;
    // What cannot be saved can still be reported, and the other way round.
    let reported = show!("{}", of_disk(plan.disk(), &limits, true));
    let file = kept::save(&into, plan.disk(), &limits)?;
    reported?;
    show!("kept in {}", escaped(&file.display().to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// Says what the machine can do.
fn examine() -> Result<ExitCode, Failure> {
    let checks = capability::all(&options::everything_traced());
    for check in &checks {
        show!("{}", line(check))?;
    }
    for need in inodyne_lab::needs() {
        show!("{}", of_places(&need))?;
    }
    let here = Identity::all();
    for (disk, limits) in disks::known().iter() {
        show!("{}", of_disk(disk, limits, here.iter().any(|one| one.is_same(disk))))?;
    }
    let needed = checks.iter().filter(|check| check.is_needed && check.problem.is_some()).count();
    if needed > 0 {
        let strace = inodyne_launch::find("strace".as_ref(), std::env::var_os("PATH").as_deref());
        let meanwhile = if strace.is_ok() { "; until then inodyne run uses strace" } else { "" };
        return Err(Failure::new(
            ExitStatus::Lacking,
            format_args!("this machine cannot trace: {needed} of the above must be mended first{meanwhile}"),
        ));
    }
    show!("inodyne run works here")?;
    Ok(ExitCode::SUCCESS)
}

/// What a disk can do.
fn of_disk(of: &Identity, limits: &DiskLimits, is_here: bool) -> String {
    let mark = if is_here { "disk" } else { "gone" };
    let model = of.model.as_ref().map_or_else(String::new, |model| format!("{}, ", escaped(model)));
    format!("{mark}     {} ({model}{}): {}", escaped(&of.name), bytes(of.size_bytes), escaped(&disk_limits(limits)))
}

/// What places need: nothing that a run in an existing directory could not do without.
fn of_places(need: &inodyne_lab::Need) -> String {
    let inodyne_lab::Need { what, problem, loss, remedy } = need;
    match problem {
        None => format!("ok       {what}"),
        Some(problem) => format!("without  {what}: {problem}; without it: {loss}; to get it: {remedy}"),
    }
}

fn line(check: &Check) -> String {
    match &check.problem {
        None => format!("ok       {}", check.what),
        Some(problem) => {
            let mark = if check.is_needed { "missing" } else { "without" };
            format!("{mark}  {}: {}; without it: {}; to get it: {}", check.what, problem, check.loss, check.remedy)
        }
    }
}
