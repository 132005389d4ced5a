//! `inodyne doctor`: what this machine can do, what is lost where it cannot, and how to get it.

use std::process::ExitCode;

use inodyne_trace::capability::{self, Check};

use crate::failure::{ExitStatus, Failure};
use crate::options;

/// Runs the command: 0 where `inodyne run` can trace with the BPF programs, otherwise 3.
pub fn run() -> Result<ExitCode, Failure> {
    let checks = capability::all(&options::everything_traced());
    for check in &checks {
        anstream::println!("{}", line(check));
    }
    for need in inodyne_lab::needs() {
        anstream::println!("{}", of_places(&need));
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
    anstream::println!("inodyne run works here");
    Ok(ExitCode::SUCCESS)
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
