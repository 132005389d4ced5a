//! What the guest is given to be tried: inodyne, the loader of its BPF programs, and this project's own end-to-end tests.
//!
//! The tests are the executables that cargo builds. They know some paths of the host from their compilation (the program
//! under test, the fixtures, the documentation); the guest has the same ones. There is no compiler: `cc` hands out the
//! fixtures, compiled here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tempfile::TempDir;

use super::toolchain::Toolchain;
use crate::failure::{Failure, output};
use crate::image::Payload;
use crate::vm::Machine;

/// The end-to-end tests that checks run.
const TESTS: [&str; 9] = ["strace", "ledger", "causes", "dtype", "block", "attach", "top", "import", "doctor"];
pub(super) const IN_GUEST: &str = "/opt/inodyne";

/// Hands out what the host compiled: `cc OPTIONS -o PROGRAM SOURCE`.
const COMPILER: &str = "#!/bin/sh
while [ $# -gt 1 ]; do
    if [ \"$1\" = -o ]; then out=$2; shift; fi
    shift
done
name=${1##*/}
cp \"/opt/inodyne/fixtures/${name%.*}\" \"$out\"
";

/// Runs a test executable one test after the other; prints how many passed, and on failure what failed first.
const PASSED: &str = "#!/bin/bash
test=/opt/inodyne/tests/$1; shift
code=0
\"$test\" --test-threads=1 \"$@\" >/tmp/test.txt 2>&1 || code=$?
cat /tmp/test.txt >&2
sed -n 's/^test \\(.*\\) \\.\\.\\. FAILED$/failed: \\1/p' /tmp/test.txt | paste -sd, >&2
awk '/^test result:/ { print $4 \" of \" $4 + $6 }' /tmp/test.txt
exit $code
";

/// Built once for an architecture, tried on each of its kernels.
pub struct Suite {
    payload: Payload,
    agent: Option<PathBuf>,
    commit: String,
}

/// What is built, while it lies in a directory of the host.
struct Built {
    inodyne: PathBuf,
    loader: PathBuf,
    tests: Vec<(String, PathBuf)>,
    workspace: PathBuf,
    tested_program: PathBuf,
    staging: TempDir,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    executable: Option<PathBuf>,
    #[serde(default)]
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Suite {
    /// Builds inodyne and, if they are needed, the tests, for an architecture by Debian's name; takes the given inodyne if there is one.
    ///
    /// # Errors
    /// Something does not compile.
    pub fn build(inodyne: Option<&Path>, with_tests: bool, arch: &str) -> Result<Suite, Failure> {
        let toolchain = Toolchain::of(arch)?;
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tests/vm").to_owned();
        let staging = tempfile::tempdir().map_err(Failure::writing("a temporary directory"))?;
        let mut tests = Vec::new();
        let mut tested_program = inodyne.map(Path::to_owned);
        for (name, executable) in build_all(&toolchain, &workspace, with_tests, inodyne.is_none())? {
            match name {
                Some(name) => tests.push((name, stripped(&toolchain, &executable, staging.path())?)),
                None => tested_program = Some(executable),
            }
        }
        let tested_program = tested_program.ok_or_else(|| Failure::new("cargo built no inodyne"))?;
        let inodyne = stripped(&toolchain, inodyne.unwrap_or(&tested_program), staging.path())?;
        let own = own_programs(&toolchain, &workspace)?;
        let loader = stripped(&toolchain, &own.with_file_name("inodyne-vm-load"), staging.path())?;
        let agent = (!toolchain.is_native()).then(|| own.with_file_name("inodyne-vm-agent"));
        fixtures(&toolchain, &workspace.join("fixtures"), &staging.path().join("fixtures"))?;
        for (name, text) in [("cc", COMPILER), ("passed", PASSED)] {
            let path = staging.path().join(name);
            fs::write(&path, text).map_err(Failure::writing(&path))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(Failure::writing(&path))?;
        }
        fs::create_dir(staging.path().join("tmp")).map_err(Failure::writing(staging.path()))?;
        let commit = commit(&workspace).unwrap_or_else(|_| "no commit".to_owned());
        let built = Built { inodyne, loader, tests, workspace, tested_program, staging };
        Ok(Suite { payload: built.payload()?.packed()?, agent, commit })
    }

    /// The commit of the sources.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// A machine with all of it in place.
    ///
    /// # Errors
    /// There is no such kernel, or it cannot be fetched.
    pub fn machine(&self, kernel: &str) -> Result<Machine, Failure> {
        Ok(Machine { agent: self.agent.clone(), ..Machine::of(kernel)?.with(self.payload.clone()) })
    }
}

impl Built {
    fn payload(&self) -> Result<Payload, Failure> {
        let staging = self.staging.path();
        let mut payload = Payload::default();
        payload.add(&self.inodyne, "/usr/local/bin/inodyne").add(&self.loader, "/usr/local/bin/inodyne-vm-load");
        payload.add(staging.join("cc"), "/usr/local/bin/cc").add(staging.join("passed"), format!("{IN_GUEST}/passed"));
        payload.add(staging.join("fixtures"), format!("{IN_GUEST}/fixtures"));
        for (name, path) in &self.tests {
            payload.add(path, format!("{IN_GUEST}/tests/{name}"));
        }
        if self.tests.is_empty() {
            return Ok(payload);
        }
        let text = |path: PathBuf| {
            let unsuitable = Failure::new(format_args!("{} is not UTF-8", path.display()));
            path.into_os_string().into_string().map_err(|_| unsuitable)
        };
        payload.link(text(self.tested_program.clone())?, "/usr/local/bin/inodyne");
        // target/debug/inodyne; with the architecture in between if it is another one.
        for target in self.tested_program.ancestors().skip(2).take(2) {
            payload.add(staging.join("tmp"), text(target.join("tmp"))?);
        }
        payload.add(staging.join("tmp"), text(self.workspace.join("crates/inodyne"))?);
        for directory in ["fixtures", "docs/causes"] {
            let path = self.workspace.join(directory);
            payload.add(&path, text(path.clone())?);
        }
        Ok(payload)
    }
}

/// The commit of the sources, and whether they are exactly those. What the matrix itself writes does not count.
fn commit(workspace: &Path) -> Result<String, Failure> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments).current_dir(workspace));
    let commit = git(&["describe", "--always"])?;
    let own = [":!docs/kernels.md", ":!tests/vm/results"];
    let changed = git(&[&["status", "--porcelain", "--untracked-files=no", "--", "."], &own[..]].concat())?;
    Ok(format!("{}{}", commit.trim(), if changed.trim().is_empty() { "" } else { "-dirty" }))
}

/// What cargo builds: tests by their names, and the program under test, which cargo builds with its tests.
fn build_all(
    toolchain: &Toolchain,
    workspace: &Path,
    with_tests: bool,
    with_inodyne: bool,
) -> Result<Vec<(Option<String>, PathBuf)>, Failure> {
    // The program comes with its tests. For the whole workspace: for a part of it, libraries may have other features, and would be
    // built again.
    let cargo = match (with_tests, with_inodyne) {
        (true, _) => {
            let tests = TESTS.iter().flat_map(|test| ["--test", test]);
            toolchain
                .cargo(&["test", "--no-run", "--workspace"].into_iter().chain(tests).collect::<Vec<_>>(), workspace)
        }
        (false, true) => toolchain.cargo(&["build", "--bin", "inodyne", "--workspace"], workspace),
        (false, false) => return Ok(Vec::new()),
    };
    built_by(cargo)
}

/// The executable files that cargo says it made: tests with their names, and programs.
fn built_by(mut cargo: Command) -> Result<Vec<(Option<String>, PathBuf)>, Failure> {
    let messages = output(&mut cargo)?;
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut built = Vec::new();
    for message in artifacts.filter(|message| message.reason == "compiler-artifact") {
        let (Some(target), Some(executable)) = (message.target, message.executable) else { continue };
        if target.kind.iter().any(|kind| kind == "test") {
            built.push((Some(target.name), executable));
        } else if target.kind.iter().any(|kind| kind == "bin") && !executable.to_string_lossy().contains("/deps/") {
            built.push((None, executable));
        }
    }
    Ok(built)
}

/// One of the programs of this crate for the guest; the others lie beside it.
fn own_programs(toolchain: &Toolchain, workspace: &Path) -> Result<PathBuf, Failure> {
    if toolchain.is_native() {
        return std::env::current_exe().map_err(Failure::reading("/proc/self/exe"));
    }
    let built = built_by(toolchain.cargo(&["build", "--package", "inodyne-vm"], workspace))?;
    let first = built.into_iter().next().ok_or_else(|| Failure::new("cargo built no inodyne-vm"))?;
    Ok(first.1)
}

/// A copy without debugging information, which is nine tenths of a program.
fn stripped(toolchain: &Toolchain, program: &Path, into: &Path) -> Result<PathBuf, Failure> {
    let to = into.join(program.file_name().expect("a program has a name"));
    output(toolchain.objcopy().arg("--strip-debug").arg(program).arg(&to))?;
    Ok(to)
}

/// Compiles all fixtures in C. One that does not compile here (for 32 bits, say) is missing in the guest, where a test that
/// wants it says so.
fn fixtures(toolchain: &Toolchain, sources: &Path, into: &Path) -> Result<(), Failure> {
    fs::create_dir(into).map_err(Failure::writing(into))?;
    for entry in fs::read_dir(sources).map_err(Failure::reading(sources))?.flatten() {
        let source = entry.path();
        if source.extension().is_some_and(|extension| extension == "c") {
            let program = into.join(source.file_stem().expect("it has an extension"));
            let mut compiler = toolchain.cc();
            compiler.args(["-std=gnu11", "-O1", "-pthread", "-w", "-o"]).arg(program).arg(&source);
            let _ = output(&mut compiler);
        }
    }
    Ok(())
}
