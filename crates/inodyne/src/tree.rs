//! `inodyne tree make` and `inodyne tree check`: arguments, and what a person sees of them.
//!
//! The work is done by `inodyne-tree`; nothing here touches a file.

use std::{num::NonZero, path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use inodyne_tree::{CheckReport, MakeOptions, MakeReport, TreeError, TreeSpec, check, make_with, recorded_spec};
use serde_json::json;

use crate::failure::{ExitStatus, Failure};
use crate::report;

/// Make a file tree determined by a few numbers, or verify one down to the last byte
#[derive(Args, Debug)]
pub struct TreeArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a tree in PATH, a new or an empty directory
    #[command(
        after_long_help = "  inodyne tree make big --depth 4 --width 32 --bytes 1\n  inodyne tree make app --spec dirs=1000,files=30"
    )]
    Make {
        #[command(flatten)]
        tree: Tree,
        /// Number of workers, instead of what suits the file system; with 1, the tree is laid out on disk the same way each time
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
        threads: Option<u16>,
    },
    /// Verify every name, type, length and byte of a tree; exit code 1 if anything differs
    ///
    /// Without options, the tree is the one that `make` recorded in an attribute of PATH.
    #[command(after_long_help = "  inodyne tree check big")]
    Check(Tree),
}

#[derive(Args, Debug)]
struct Tree {
    /// The root of the tree
    path: PathBuf,
    /// Everything at once, as in studies: "depth=4,width=32,bytes=1" or "dirs=1000,files=30,bytes=~512"
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with_all = ["depth", "width", "dirs", "fan"])]
    spec: Option<String>,
    /// Number of levels, counting that of the files
    #[arg(long, requires = "width", help_heading = "Shape")]
    depth: Option<u32>,
    /// Directories in each directory, and files in each of the lowest
    #[arg(long, requires = "depth", help_heading = "Shape")]
    width: Option<u64>,
    /// Instead of depth and width: number of lowest directories; 0 puts the files into PATH itself
    #[arg(long, conflicts_with = "depth", help_heading = "Shape")]
    dirs: Option<u64>,
    /// With --dirs: at most this many directories in one parent
    #[arg(long, requires = "dirs", help_heading = "Shape")]
    fan: Option<u64>,
    /// Files in each lowest directory: a number, LOW..HIGH (evenly) or ~MEAN (exponential)
    #[arg(long, value_name = "AMOUNT", help_heading = "Contents")]
    files: Option<String>,
    /// Bytes in each file, written like --files
    #[arg(long, value_name = "AMOUNT", help_heading = "Contents")]
    bytes: Option<String>,
    /// Length of each name in bytes, written like --files; at least what its number needs, at most 255
    #[arg(long, value_name = "AMOUNT", help_heading = "Contents")]
    names: Option<String>,
    /// Another seed gives other bytes and other draws
    #[arg(long, help_heading = "Contents")]
    seed: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Tree {
    /// The specification that the options give; `None` if there is none.
    fn spec(&self) -> Result<Option<TreeSpec>, TreeError> {
        let mut pairs: Vec<String> = self.spec.iter().cloned().collect();
        let mut add = |key: &str, value: Option<String>| pairs.extend(value.map(|value| format!("{key}={value}")));
        add("depth", self.depth.map(|it| it.to_string()));
        add("width", self.width.map(|it| it.to_string()));
        add("dirs", self.dirs.map(|it| it.to_string()));
        add("fan", self.fan.map(|it| it.to_string()));
        add("files", self.files.clone());
        add("bytes", self.bytes.clone());
        add("names", self.names.clone());
        add("seed", self.seed.map(|it| it.to_string()));
        if pairs.is_empty() { Ok(None) } else { Ok(Some(pairs.join(",").parse()?)) }
    }
}

/// Runs `inodyne tree`.
pub fn run(args: &TreeArgs) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::Make { tree, threads } => {
            let Some(spec) = tree.spec()? else {
                let text = "say which tree: --depth and --width, or --dirs, or --spec (see inodyne tree make --help)";
                return Err(Failure::new(ExitStatus::Usage, text));
            };
            let threads = threads.and_then(|threads| NonZero::new(usize::from(threads)));
            print(&made(
                tree,
                &spec,
                &make_with(&spec, &tree.path, MakeOptions { threads, ..MakeOptions::default() })?,
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Check(tree) => {
            let spec = match tree.spec()? {
                Some(spec) => spec,
                None => recorded_spec(&tree.path)?,
            };
            let report = check(&spec, &tree.path)?;
            print(&checked(tree, &spec, &report))?;
            Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    report::write(text.as_bytes(), None)
}

fn made(tree: &Tree, spec: &TreeSpec, report: &MakeReport) -> String {
    let MakeReport { files, directories, bytes, wall, threads, file_system } = report;
    if tree.json {
        let value = json!({
            "spec": spec.to_string(), "files": files, "directories": directories, "bytes": bytes,
            "wall_ns": wall.as_nanos() as u64, "threads": threads, "fs": file_system.to_string(),
        });
        return format!("{value}\n");
    }
    format!(
        "{}: {files} files in {directories} directories, {bytes} bytes, {:.3} s ({file_system}, {threads} threads)\n",
        tree.path.display(),
        wall.as_secs_f64()
    )
}

fn checked(tree: &Tree, spec: &TreeSpec, report: &CheckReport) -> String {
    let CheckReport { files, directories, bytes, problems, first, wall } = report;
    if tree.json {
        let first: Vec<_> = first.iter().map(ToString::to_string).collect();
        let value = json!({
            "spec": spec.to_string(), "files": files, "directories": directories, "bytes": bytes,
            "wall_ns": wall.as_nanos() as u64, "problems": problems, "first_problems": first,
        });
        return format!("{value}\n");
    }
    let mut text: String = first.iter().map(|problem| format!("{problem}\n")).collect();
    if *problems > first.len() as u64 {
        text += &format!("... and {} more\n", problems - first.len() as u64);
    }
    let verdict = match problems {
        0 => format!("all as specified ({:.3} s)", wall.as_secs_f64()),
        1 => "1 difference".into(),
        more => format!("{more} differences"),
    };
    let path = tree.path.display();
    text + &format!("{path}: {files} files in {directories} directories, {bytes} bytes: {verdict}\n")
}
