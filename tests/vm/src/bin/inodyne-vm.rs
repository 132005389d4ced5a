//! Kernels in virtual machines, from the command line: fetch them, run a command in one, ask one what it says about the BPF
//! programs, and make the matrix of all (`make test-kernels`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use inodyne_vm::matrix::{self, Outcome, Selection, Suite};
use inodyne_vm::programs::Verdict;
use inodyne_vm::wire::Status;
use inodyne_vm::{Failure, Machine, Payload, System, Task, Vm, kernel};

/// Kernels of distributions in virtual machines.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the kernels, and fetch those that are not in the cache.
    Fetch {
        /// Ask for newer packages, too.
        #[arg(long)]
        refresh: bool,
        /// Only these.
        kernels: Vec<String>,
    },
    /// Run a command in a guest; its exit code is this one's.
    Run {
        /// The kernel, by its name in kernels.toml.
        kernel: String,
        /// Put this inodyne into the guest, as /usr/local/bin/inodyne.
        #[arg(long)]
        inodyne: Option<PathBuf>,
        /// Put a file or directory into the guest: FROM=TO.
        #[arg(long = "add", value_parser = addition)]
        additions: Vec<(PathBuf, String)>,
        /// The agent, built for the guest's architecture.
        #[arg(long)]
        agent: Option<PathBuf>,
        /// Add this to the kernel's command line.
        #[arg(long, default_value = "")]
        append: String,
        /// With systemd as the first process, D-Bus and Podman.
        #[arg(long)]
        systemd: bool,
        /// Kill it after this many seconds.
        #[arg(long, default_value_t = 600)]
        timeout: u64,
        /// Show the kernel's log at the end.
        #[arg(long)]
        console: bool,
        /// The command.
        #[arg(last = true, required = true)]
        argv: Vec<String>,
    },
    /// Load each BPF program alone in a guest, and show what the verifier said.
    Load {
        /// The inodyne whose programs these are.
        #[arg(long)]
        inodyne: PathBuf,
        /// Write the whole logs of the verifier to DIRECTORY/verifier-KERNEL.txt.
        #[arg(long)]
        logs: Option<PathBuf>,
        /// Constants of the BPF programs: NAME=VALUE.
        #[arg(long = "set")]
        constants: Vec<String>,
        /// The kernels.
        #[arg(required = true)]
        kernels: Vec<String>,
    },
    /// Run the checks of checks.toml on the kernels of kernels.toml.
    Matrix {
        /// The inodyne to try; the one that is built with the tests if not given.
        #[arg(long)]
        inodyne: Option<PathBuf>,
        /// Only kernels and checks of the short matrix.
        #[arg(long)]
        short: bool,
        /// Only these checks.
        #[arg(long = "check")]
        checks: Vec<String>,
        /// Keep the results in tests/vm/results, and write the table of all that are kept there, as Markdown.
        #[arg(long)]
        write: Option<PathBuf>,
        /// Where to keep what failed checks printed, and the kernel's log.
        #[arg(long, default_value = "target/vm")]
        logs: PathBuf,
        /// Only these kernels.
        kernels: Vec<String>,
    },
    /// Print the table of the results in tests/vm/results, as Markdown.
    Page,
}

fn addition(text: &str) -> Result<(PathBuf, String), String> {
    let (from, to) = text.split_once('=').ok_or("not FROM=TO")?;
    Ok((from.into(), to.to_owned()))
}

fn main() -> ExitCode {
    let done = match Options::parse().command {
        Command::Fetch { refresh, kernels } => fetch(&kernels, refresh),
        Command::Run { kernel, inodyne, additions, agent, append, systemd, timeout, console, argv } => {
            let mut payload = payload(inodyne.as_deref());
            for (from, to) in additions {
                payload.add(from, to);
            }
            let task = Task::new(argv).timeout(Duration::from_secs(timeout));
            let machine = Machine::of(&kernel).map(|machine| machine.with(payload));
            let system = if systemd { System::Systemd } else { System::Bare };
            machine
                .and_then(|machine| run(&Machine { agent, system, kernel_arguments: append, ..machine }, task, console))
        }
        Command::Matrix { inodyne, short, checks, write, logs, kernels } => {
            matrix(&Selection { kernels, checks, short }, inodyne.as_deref(), write.as_deref(), &logs)
        }
        Command::Page => page(),
        Command::Load { inodyne, logs, constants, kernels } => load(&inodyne, logs.as_deref(), &constants, &kernels),
    };
    done.unwrap_or_else(|failure| {
        eprintln!("inodyne-vm: {failure}");
        ExitCode::from(3)
    })
}

fn payload(inodyne: Option<&Path>) -> Payload {
    let mut payload = Payload::default();
    if let Some(inodyne) = inodyne {
        payload.add(inodyne, "/usr/local/bin/inodyne");
    }
    payload
}

fn fetch(names: &[String], refresh: bool) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    for entry in kernel::all().into_iter().filter(|entry| names.is_empty() || names.contains(&entry.name)) {
        match entry.fetch(&kernel::cache(), refresh) {
            Ok(kernel) => println!("{:<12} {:<28} {}", entry.name, kernel.release, kernel.package),
            Err(failure) => {
                println!("{:<12} {failure}", entry.name);
                code = ExitCode::from(3);
            }
        }
    }
    Ok(code)
}

fn run(machine: &Machine, task: Task, console: bool) -> Result<ExitCode, Failure> {
    let mut vm = Vm::boot(machine)?;
    eprintln!("inodyne-vm: {} booted in {:.1} s", vm.kernel(), vm.booted_in().as_secs_f64());
    let done = vm.run(task)?;
    // Whoever reads this may have ended: then there is nobody to tell.
    let _ = std::io::stdout().write_all(&done.stdout);
    let _ = std::io::stderr().write_all(&done.stderr);
    if console {
        eprint!("{}", vm.console());
    }
    Ok(match done.status {
        Status::Exit(code) => ExitCode::from(code as u8),
        Status::Signal(signal) => ExitCode::from(128 + signal as u8),
        Status::TimedOut => {
            eprintln!("inodyne-vm: it was killed after {:.0} s", done.wall.as_secs_f64());
            ExitCode::from(124)
        }
    })
}

fn load(inodyne: &Path, logs: Option<&Path>, constants: &[String], kernels: &[String]) -> Result<ExitCode, Failure> {
    let loader = std::env::current_exe().map_err(Failure::reading("/proc/self/exe"))?.with_file_name("inodyne-vm-load");
    let mut code = ExitCode::SUCCESS;
    for kernel in kernels {
        let mut payload = payload(Some(inodyne));
        payload.add(&loader, "/usr/local/bin/inodyne-vm-load");
        let mut vm = Vm::boot(&Machine::of(kernel)?.with(payload))?;
        let mut argv = vec!["inodyne-vm-load".to_owned(), "/usr/local/bin/inodyne".into()];
        argv.extend(constants.iter().flat_map(|constant| ["--set".into(), constant.clone()]));
        let done = vm.run(Task::new(argv).timeout(Duration::from_secs(1200)))?;
        if !matches!(done.status, Status::Exit(0 | 1)) {
            return Err(Failure::new(format_args!("{kernel}: {:?} {}", done.status, done.errors().trim())));
        }
        let mut log = format!("# {kernel}: {} with {}\n", vm.kernel(), constants.join(" "));
        println!("{kernel} ({})", vm.kernel());
        for line in done.text().lines() {
            let verdict: Verdict = serde_json::from_str(line).map_err(Failure::new)?;
            let verified = verdict.verified.map_or_else(|| "-".to_owned(), |count| count.to_string());
            let refused = verdict.refused.as_ref();
            let word = refused.map_or_else(|| "loads".to_owned(), |refusal| format!("REFUSED {}", refusal.reason));
            println!(
                "  {:<24} {:>6} instructions, {verified:>8} verified  {word}",
                verdict.program, verdict.instructions
            );
            if let Some(refusal) = refused {
                code = ExitCode::from(1);
                log += &format!(
                    "\n## {} ({}): {}\n{}\n{}\n",
                    verdict.program, verdict.section, refusal.reason, refusal.said, refusal.log
                );
            }
        }
        if let Some(directory) = logs {
            let path = directory.join(format!("verifier-{kernel}.txt"));
            fs::write(&path, log).map_err(Failure::writing(&path))?;
        }
    }
    Ok(code)
}

fn page() -> Result<ExitCode, Failure> {
    print!("{}", matrix::page(&matrix::saved(&matrix::results())?));
    Ok(ExitCode::SUCCESS)
}

fn matrix(
    selection: &Selection,
    inodyne: Option<&Path>,
    write: Option<&Path>,
    logs: &Path,
) -> Result<ExitCode, Failure> {
    selection.check_names()?;
    let mut code = ExitCode::SUCCESS;
    let mut suites = BTreeMap::new();
    for entry in selection.kernels() {
        let suite = match suites.entry(entry.arch.clone()) {
            Entry::Occupied(built) => built.into_mut(),
            Entry::Vacant(none) => none.insert(Suite::build(inodyne, selection.needs_tests(), &entry.arch)?),
        };
        let name = entry.name.clone();
        let mut tell = |outcome: &Outcome| {
            let Outcome { check, passed, note, reason, wall, .. } = outcome;
            let word = if *passed { "yes" } else { "NO" };
            println!("{name:<12} {check:<10} {word:<4} {:>6.1} s  {note} {reason}", wall.as_secs_f64());
        };
        match matrix::run(&entry, selection, suite, logs, &mut tell) {
            Ok(results) => {
                if results.outcomes.iter().any(|outcome| !outcome.passed) {
                    code = ExitCode::from(1);
                }
                if let Some(page) = write {
                    matrix::save(&matrix::results(), &results)?;
                    let all = matrix::saved(&matrix::results())?;
                    fs::write(page, matrix::page(&all)).map_err(Failure::writing(page))?;
                }
            }
            Err(failure) => {
                println!("{name:<12} {failure}");
                code = ExitCode::from(1);
            }
        }
    }
    Ok(code)
}
