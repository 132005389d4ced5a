//! Formatting and packing: the file system's own program, as a child that dies with us.
//!
//! A child that outlived us would keep the device open and so the image alive. Its output is not the user's business unless
//! it fails; then its last complaint is the message.

use std::{
    env,
    io::Error,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::{
    Kind, LabError, Size,
    kind::{Mkfs, Order},
};

/// Makes a `kind` of `size` on `device`, with the user's `arguments` after ours.
pub(crate) fn format(kind: Kind, device: &Path, size: Size, arguments: &[String]) -> Result<(), LabError> {
    let Some(mkfs) = kind.mkfs() else { return Ok(()) };
    // mkfs.xfs makes smaller ones for its own tests, when asked to.
    if size < mkfs.least && !arguments.iter().any(|argument| argument == "--unsupported") {
        return Err(LabError::TooSmallForKind { kind, size, least: mkfs.least });
    }
    let sparing = mkfs.sparing.map(|option| with_extended(arguments, option));
    let mut output = run(mkfs, sparing.as_deref().unwrap_or(arguments), None, device)?;
    if !output.status.success() && mkfs.sparing.is_some_and(|option| complains_about(&output, option)) {
        output = run(mkfs, arguments, None, device)?;
    }
    succeeded(mkfs, &output)
}

/// Makes a `kind` of what is in `directory`, as `image`, with the user's `arguments` after ours.
pub(crate) fn pack(kind: Kind, directory: &Path, image: &Path, arguments: &[String]) -> Result<(), LabError> {
    let Some(mkfs) = kind.mkfs() else { return Ok(()) };
    succeeded(mkfs, &run(mkfs, arguments, Some(directory), image)?)
}

fn succeeded(mkfs: &Mkfs, output: &Output) -> Result<(), LabError> {
    match output.status.success() {
        true => Ok(()),
        false => Err(LabError::MkfsFailed { program: mkfs.program, said: complaint(output) }),
    }
}

/// The arguments with one more extended option. mke2fs heeds only the last `-E`, so ours goes into the user's.
fn with_extended(arguments: &[String], option: &str) -> Vec<String> {
    let mut arguments = arguments.to_vec();
    let Some(at) = arguments.iter().rposition(|argument| argument.starts_with("-E")) else {
        arguments.splice(0..0, ["-E".to_owned(), option.to_owned()]);
        return arguments;
    };
    let value = if arguments[at] == "-E" { at + 1 } else { at };
    if let Some(value) = arguments.get_mut(value) {
        value.push(',');
        value.push_str(option);
    }
    arguments
}

fn run(mkfs: &Mkfs, arguments: &[String], from: Option<&Path>, to: &Path) -> Result<Output, LabError> {
    let program = find(mkfs.program).ok_or(LabError::MkfsMissing { program: mkfs.program, package: mkfs.package })?;
    let parent = rustix::process::getpid();
    let mut command = Command::new(&program);
    match mkfs.order {
        Order::Device | Order::OptionsImageDirectory => command.args(mkfs.always).args(arguments).arg(to).args(from),
        Order::DirectoryImageOptions => command.args(from).arg(to).args(mkfs.always).args(arguments),
    };
    command.stdin(Stdio::null());
    // Messages are quoted and, above, inspected: they must be in one language.
    command.env("LC_ALL", "C");
    let begin = move || {
        inodyne_launch::unblock_all()?;
        die_with(parent)
    };
    // SAFETY: between fork and exec only system calls are made, nothing is allocated.
    unsafe { command.pre_exec(begin) };
    command.output().map_err(|error| LabError::io("run", program, error))
}

/// Makes the calling process end when its parent does.
fn die_with(parent: Pid) -> Result<(), Error> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Error::from_raw_os_error(libc::ESRCH)) }
}

/// The program in PATH, or where root's programs are: sudo and login shells differ in whether those are in PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from));
    inodyne_launch::find(program.as_ref(), env::join_paths(directories).ok().as_deref()).ok()
}

fn complains_about(output: &Output, option: &str) -> bool {
    option.split('=').next().is_some_and(|key| String::from_utf8_lossy(&output.stderr).contains(key))
}

/// What it said, without its usage text: the lines before "Usage:", in one.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_manual = |line: &&str| !line.to_lowercase().starts_with("usage:") && !line.starts_with("/*");
    let lines: Vec<_> = lines.take_while(is_manual).take(4).collect();
    if lines.is_empty() { output.status.to_string() } else { lines.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_option_joins_those_of_the_user() {
        for (given, becomes) in [
            ("", "-E new=1"),
            ("-I 128", "-E new=1 -I 128"),
            ("-E stride=4 -I 128", "-E stride=4,new=1 -I 128"),
            ("-Estride=4", "-Estride=4,new=1"),
            ("-E a -E b", "-E a -E b,new=1"),
            ("-E", "-E"),
        ] {
            let words: Vec<_> = given.split_whitespace().map(str::to_owned).collect();
            assert_eq!(with_extended(&words, "new=1").join(" "), becomes);
        }
    }

    #[test]
    fn a_complaint_is_one_line_without_the_manual() {
        let output = Command::new("sh").args(["-c", "printf 'bad x\\n  bad y\\nUsage: z\\nw\\n' >&2; exit 1"]).output();
        assert_eq!(complaint(&output.unwrap()), "bad x; bad y");
        assert_eq!(complaint(&Command::new("false").output().unwrap()), "exit status: 1");
        assert_eq!(find("mkfs.none-such"), None);
    }
}
