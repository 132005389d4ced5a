//! A directory of this machine in a virtual machine, in each way that it can be had there: this project's share, virtiofs, 9p, NFS, sshfs,
//! and besides them the guest's own disk (`make bench-share-vm`).
//!
//! | module | what it knows |
//! |---|---|
//! | this one | the machine, and the rounds |
//! | `places` | how each place is mounted, and what serves it |
//! | `requests` | what each asks of the host, as the guest's kernel counts it |
//! | `report` | the tables |
//!
//! Each round does everything once in each place, in a newly drawn order, so that whatever else the machine does falls on all. Requests are
//! counted in a separate round, which is not timed. NFS's server is a program, too, and its network one that QEMU makes.

mod places;
mod report;
mod requests;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;
use inodyne_vm::share::{Share, tell, tell_within};
use inodyne_vm::{Machine, Payload, Task, Vm};

use places::{PLACES, Servers};
use report::Report;

/// Measures what people do with files in each kind of shared folder of one virtual machine.
#[derive(Parser)]
pub struct Options {
    /// The program: an optimised one.
    #[arg(long, default_value = "target/release/inodyne")]
    inodyne: PathBuf,
    /// Directories in the tree.
    #[arg(long, default_value_t = 100)]
    directories: u64,
    /// Files in each of them.
    #[arg(long, default_value_t = 30)]
    files: u64,
    /// How often everything is timed.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Only these places, by their names in the tables.
    #[arg(long = "place", value_name = "NAME")]
    places: Vec<String>,
    /// Where the shared directory is made.
    #[arg(long, default_value = "/var/tmp")]
    into: PathBuf,
    /// Lines for the guest's shell that are run in each place after it was mounted, in place of measuring; what they print is printed.
    #[arg(long, value_name = "LINES")]
    instead: Option<String>,
    /// Draws other orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The guest's kernel, by its name in kernels.toml.
    #[arg(default_value = "6.18")]
    kernel: String,
}

type Failed = Box<dyn Error>;

/// What is done in each place, in this order: a name, and lines for the shell whose directory it is.
pub const WORK: [(&str, &str); 11] = [
    ("find, cold", "find tree"),
    ("find, again", "find tree"),
    ("find, warm", "find tree"),
    ("cat, cold", "find tree -type f -print0 | xargs -0 cat"),
    ("cat, warm", "find tree -type f -print0 | xargs -0 cat"),
    ("git status, cold", GIT_STATUS),
    ("git status, warm", GIT_STATUS),
    ("tar x", UNPACK),
    ("rm -rf", "rm -rf new"),
    ("tar x, again", UNPACK),
    ("inodyne rm -rf", "inodyne rm -rf new"),
];

const UNPACK: &str = "mkdir new && tar xf /tmp/tree.tar -C new";

/// It compares what every place has alike, and writes nothing.
const GIT_STATUS: &str = "git --no-optional-locks -c safe.directory=* -c core.checkStat=minimal -c core.trustctime=false \
     -C tree status --porcelain";

/// How long one round in one place may take.
const PATIENCE: Duration = Duration::from_secs(1800);

fn main() -> ExitCode {
    match bench(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("inodyne-vm-bench-share: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> Result<(), Failed> {
    let scratch = tempfile::Builder::new().prefix("inodyne-vm-bench-share-").tempdir_in(&options.into)?;
    let share = Share::of_tree(&options.inodyne, scratch.path(), options.directories, options.files, 100)?;
    let archive = scratch.path().join("tree.tar");
    sh(&share.directory, &format!("tar cf {} -C tree .", archive.display()))?;
    // The index must be younger than the files: git looks into those that are not older.
    std::thread::sleep(Duration::from_secs(2));
    let git = "git -c user.name=b -c user.email=b@localhost -C tree";
    sh(&share.directory, &format!("{git} init -q && {git} add . && {git} commit -qm tree && {git} repack -qad"))?;
    let whole = scratch.path().join("whole.tar");
    sh(&share.directory, &format!("tar cf {} tree", whole.display()))?;

    let mut machine = Machine::of(&options.kernel)?;
    let servers = Servers::start(&machine.cache, scratch.path(), &share, machine.memory_mib)?;
    let mut payload = Payload::default();
    payload.add(&share.inodyne, "/usr/local/bin/inodyne");
    machine = machine.with(payload);
    machine.qemu_arguments = servers.qemu_arguments();
    let mut vm = Vm::boot(&machine)?;
    eprintln!("booted {} in {:.0} s", vm.kernel(), vm.booted_in().as_secs_f64());
    for (from, to) in [(&archive, "/tmp/tree.tar"), (&whole, "/tmp/whole.tar")] {
        vm.put(to, 0o644, &fs::read(from)?)?;
    }
    tell(&mut vm, "mkdir /var/tmp/native && tar xf /tmp/whole.tar -C /var/tmp/native && sync")?;

    let chosen: Vec<_> = (0..PLACES.len())
        .filter(|at| options.places.is_empty() || options.places.iter().any(|name| name == PLACES[*at].name))
        .collect();
    if let Some(lines) = &options.instead {
        for at in chosen {
            println!("== {}", PLACES[at].name);
            servers.mount(&mut vm, at)?;
            let done = vm.run(Task::shell(lines).directory(PLACES[at].directory).timeout(PATIENCE))?;
            println!("{}{}", done.text(), done.errors());
            servers.unmount(&mut vm, at)?;
        }
        return Ok(());
    }
    let mut report = Report::new(options, vm.kernel(), &servers);
    for at in &chosen {
        report.requests[*at] = requests::of_round(&mut vm, &servers, &share, *at)?;
        eprintln!("counted {}", PLACES[*at].name);
    }
    let mut random = options.seed;
    for round in 1..=options.rounds {
        for at in shuffled(&chosen, &mut random) {
            let began = Instant::now();
            let times = timed(&mut vm, &servers, at)?;
            eprintln!("round {round}: {}, {:.0} s: {times:.2?}", PLACES[at].name, began.elapsed().as_secs_f64());
            report.times[at].push(times);
        }
    }
    println!("{report}");
    Ok(())
}

/// The seconds of each piece of work, by the guest's clock.
fn timed(vm: &mut Vm, servers: &Servers, at: usize) -> Result<Vec<f64>, Failed> {
    servers.mount(vm, at)?;
    let mut lines = format!("cd {}\n", PLACES[at].directory);
    for (_, work) in WORK {
        lines += &format!(
            "began=${{EPOCHREALTIME/./}}; {{ {work}; }} >/dev/null; ended=${{EPOCHREALTIME/./}}; echo $((ended - began))\n"
        );
    }
    let text = tell_within(vm, &lines, PATIENCE)?;
    servers.unmount(vm, at)?;
    let times: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).map(|micros: f64| micros / 1e6).collect();
    if times.len() == WORK.len() { Ok(times) } else { Err(text.into()) }
}

/// In another order, drawn by a linear congruential generator.
fn shuffled(all: &[usize], random: &mut u64) -> Vec<usize> {
    let mut all = all.to_vec();
    for last in (1..all.len()).rev() {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.swap(last, (*random >> 33) as usize % (last + 1));
    }
    all
}

fn sh(directory: &Path, line: &str) -> Result<(), Failed> {
    let done = Command::new("sh").args(["-c", line]).current_dir(directory).status()?;
    if done.success() { Ok(()) } else { Err(format!("{line}: {done}").into()) }
}
