//! Loads each BPF program of an inodyne alone, and prints what the kernel said about it, a JSON line for each.
//!
//! Runs inside a guest, or here: `inodyne-vm-load target/release/inodyne --set record_paths=1`.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;
use inodyne_vm::programs::{objects, verdicts};

/// Loads each BPF program of an inodyne alone.
#[derive(Parser)]
struct Options {
    /// The program, or a BPF object.
    file: PathBuf,
    /// Constants of the BPF programs: NAME=VALUE.
    #[arg(long = "set", value_parser = constant)]
    constants: Vec<(String, u64)>,
    /// Fail where the verifier looked at more instructions of a program than this.
    #[arg(long, default_value_t = u64::MAX)]
    budget: u64,
    /// Print one line for all of them.
    #[arg(long)]
    summary: bool,
}

fn constant(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("not NAME=VALUE")?;
    Ok((name.to_owned(), value.parse().map_err(|_| format!("{value} is not a number"))?))
}

/// File systems that programs look into: these can be loaded only where the file system is.
const OBSERVED: [&str; 4] = ["jbd2", "ext4", "xfs", "btrfs"];

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(all) => ExitCode::from(u8::from(!all)),
        Err(error) => {
            eprintln!("inodyne-vm-load: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<bool, Box<dyn std::error::Error>> {
    for module in OBSERVED {
        // Built in, or not there at all.
        let _ = Command::new("modprobe").arg("-q").arg(module).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    let file = std::fs::read(&options.file)?;
    let objects = objects(&file);
    if objects.is_empty() {
        return Err("there is no BPF object in it".into());
    }
    let (mut all, mut loaded, mut most) = (0, 0, 0);
    for object in objects {
        for verdict in verdicts(object, &options.constants)? {
            let verified = verdict.verified.unwrap_or(0);
            all += 1;
            loaded += usize::from(verdict.refused.is_none());
            most = most.max(verified);
            if !options.summary {
                println!("{}", serde_json::to_string(&verdict)?);
                continue;
            }
            if verified > options.budget {
                eprintln!(
                    "{}: {verified} instructions were verified, over the budget of {}",
                    verdict.program, options.budget
                );
            }
            if let Some(refusal) = verdict.refused {
                eprintln!("{}: {}", verdict.program, refusal.reason);
            }
        }
    }
    if options.summary {
        println!("{loaded} of {all}, {most} instructions verified of the largest");
    }
    Ok(loaded == all && most <= options.budget)
}
