//! The command line: arguments in, one subcommand called, its exit code out.

mod rm;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Says where the wall-clock time of a file-heavy command went, why, and what makes it faster
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Delete, with the strategy that suits the file system
    Rm(rm::RmArgs),
    /// Make or check trees
    Tree(tree::TreeArgs),
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // `rm` has GNU rm's own way of reading its arguments.
    let result = if arguments.next().is_some_and(|first| first == "rm") {
        rm::run(arguments)
    } else {
        match Cli::parse().command {
            Command::Rm(_) => unreachable!("dealt with above"),
            Command::Tree(args) => tree::run(&args),
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("inodyne: {error:#}");
        ExitCode::from(2)
    })
}
