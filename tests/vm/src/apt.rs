//! Packages of any Debian suite and architecture, without touching the machine's own apt.
//!
//! Each suite has its own directory in the cache with its own sources, lists and state. The mirror is the one that this
//! machine's apt uses for its own release (or `INODYNE_VM_MIRROR`); proxies and the like come from its configuration, too.
//! Signatures are verified as always, with the keyring of the package debian-archive-keyring; where a suite is signed
//! with a newer key, with that of its newest version in this machine's own release.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, output, wanted};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const MIRROR: &str = "INODYNE_VM_MIRROR";

/// One suite for one architecture, by Debian's names (`bookworm-backports`, `arm64`).
#[derive(Debug, Clone)]
pub struct Suite {
    directory: PathBuf,
    arch: String,
}

/// The name of this machine's release: programs that run here run in a guest of it, too.
///
/// # Errors
/// `/etc/os-release` names none.
pub fn own_release() -> Result<String, Failure> {
    let text = fs::read_to_string("/etc/os-release").map_err(Failure::reading("/etc/os-release"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    line.map(str::to_owned).ok_or_else(|| Failure::new("/etc/os-release names no VERSION_CODENAME"))
}

/// The address from which this machine's apt takes the packages of its own release.
fn mirror() -> Result<String, Failure> {
    if let Ok(mirror) = std::env::var(MIRROR) {
        return Ok(mirror);
    }
    let release = own_release()?;
    let format = "$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)";
    let mut targets = Command::new("apt-get");
    let text = output(targets.args(["indextargets", "--format", format, "Created-By: Packages"]))?;
    let own = format!("Debian {release} main ");
    text.lines().find_map(|line| line.strip_prefix(&own)).map(str::to_owned).ok_or_else(|| {
        Failure::new(format_args!(
            "this machine's apt has no Debian suite {release} ('apt-get update' may be missing): set {MIRROR} to a mirror of Debian"
        ))
    })
}

impl Suite {
    /// Prepares the suite; asks the mirror only where that has never been done, or with `refresh`.
    ///
    /// # Errors
    /// There is no apt, no mirror, or it does not have the suite.
    pub fn open(cache: &Path, suite: &str, arch: &str, refresh: bool) -> Result<Suite, Failure> {
        let directory = cache.join("apt").join(format!("{suite}-{arch}"));
        let known = directory.join("updated");
        let this = Suite { directory, arch: arch.to_owned() };
        if known.exists() && !refresh {
            return Ok(this);
        }
        for name in ["lists/partial", "archives/partial"] {
            let path = this.directory.join(name);
            fs::create_dir_all(&path).map_err(Failure::writing(&path))?;
        }
        this.write("status", "")?;
        let mirror = mirror()?;
        this.write("sources.list", &format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n"))?;
        if let Err(first) = this.update() {
            let newer = newer_keyring(cache, arch, suite).map_err(|_| first)?;
            this.write("sources.list", &format!("deb [signed-by={}] {mirror} {suite} main\n", newer.display()))?;
            this.update()?;
        }
        this.write("updated", "")?;
        Ok(this)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.directory.join(name);
        fs::write(&path, text).map_err(Failure::writing(&path))
    }

    fn update(&self) -> Result<(), Failure> {
        // Without this apt is content with a mirror that does not answer.
        output(self.apt("apt-get").args(["-o", "APT::Update::Error-Mode=any", "update"])).map(|_| ())
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = |name: &str| self.directory.join(name).display().to_string();
        for (option, value) in [
            ("APT::Architecture", self.arch.clone()),
            ("APT::Architectures", self.arch.clone()),
            ("APT::Sandbox::User", "root".into()),
            ("APT::Install-Recommends", "false".into()),
            ("Dir::Etc::SourceList", path("sources.list")),
            ("Dir::Etc::SourceParts", "/dev/null".into()),
            ("Dir::Etc::PreferencesParts", "/dev/null".into()),
            ("Dir::State::Lists", path("lists")),
            ("Dir::State::status", path("status")),
            ("Dir::Cache", path("")),
            ("Dir::Cache::archives", path("archives")),
            ("Acquire::Languages", "none".into()),
            ("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".into()),
            ("APT::Keep-Downloaded-Packages", "true".into()),
            ("Acquire::Retries", "3".into()),
        ] {
            command.args(["-o", &format!("{option}={value}")]);
        }
        command.arg("-qq").env("DEBIAN_FRONTEND", "noninteractive").current_dir(&self.directory);
        command
    }

    /// The names of all packages that begin with this prefix.
    ///
    /// # Errors
    /// apt fails.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let text = output(self.apt("apt-cache").args(["pkgnames", prefix]))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// One field of a package, such as `Depends`; empty where it has none.
    ///
    /// # Errors
    /// apt fails.
    pub fn field(&self, package: &str, field: &str) -> Result<String, Failure> {
        let text = output(self.apt("apt-cache").args(["show", "--no-all-versions", package]))?;
        let prefix = format!("{field}: ");
        Ok(text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default().to_owned())
    }

    /// Fetches just these packages.
    ///
    /// # Errors
    /// apt fails.
    pub fn download(&self, packages: &[String], into: &Path) -> Result<Vec<PathBuf>, Failure> {
        output(self.apt("apt-get").arg("download").args(packages).current_dir(into))?;
        debs(into)
    }

    /// Fetches these packages and all that they depend on.
    ///
    /// # Errors
    /// apt fails.
    pub fn download_closure(&self, packages: &[String]) -> Result<Vec<PathBuf>, Failure> {
        output(self.apt("apt-get").args(["install", "--download-only", "-y"]).args(packages))?;
        let would_do = output(self.apt("apt-get").args(["install", "--simulate", "-y"]).args(packages))?;
        let mut debs = debs(&self.directory.join("archives"))?;
        // What was fetched for another list, or is an older version, lies there as well.
        let wanted: BTreeSet<String> = would_do.lines().filter_map(archive_name).collect();
        debs.retain(|path| path.file_name().is_some_and(|name| wanted.contains(&*name.to_string_lossy())));
        Ok(debs)
    }
}

/// The file that apt keeps a package in, by the line that says that apt would install it: `Inst bash (5.2-2 Debian:12 [amd64])`.
fn archive_name(line: &str) -> Option<String> {
    let (name, rest) = line.strip_prefix("Inst ")?.split_once(" (")?;
    let (version, rest) = rest.split_once(' ')?;
    let arch = rest.split_once('[')?.1.split_once(']')?.0;
    Some(format!("{name}_{}_{arch}.deb", version.replace(':', "%3a")))
}

/// The packages in a directory, in order.
fn debs(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(directory).map_err(Failure::reading(directory))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    paths.sort();
    Ok(paths)
}

/// The keyring of the newest debian-archive-keyring in this machine's own release, which the keys here vouch for.
fn newer_keyring(cache: &Path, arch: &str, suite: &str) -> Result<PathBuf, Failure> {
    let release = own_release()?;
    if release == suite {
        return Err(Failure::new("no newer keyring"));
    }
    let own = Suite::open(cache, &release, arch, false)?;
    let into = cache.join("keyring");
    fs::create_dir_all(&into).map_err(Failure::writing(&into))?;
    for deb in own.download(&["debian-archive-keyring".into()], &into)? {
        unpack(&deb, &into)?;
    }
    wanted(into.join(KEYRING.trim_start_matches('/')))
}

/// Unpacks a package without running anything from it. Links in `into` stay what they are (`bin -> usr/bin`).
///
/// # Errors
/// It is no package, or the disk is full.
pub fn unpack(deb: &Path, into: &Path) -> Result<(), Failure> {
    let script = "set -e; dpkg-deb --fsys-tarfile \"$1\" | tar -x --keep-directory-symlink -C \"$2\"";
    let mut command = Command::new("bash");
    output(command.args(["-o", "pipefail", "-c", script, "unpack"]).arg(deb).arg(into)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_apt_names_the_file_of_a_package() {
        let named = |line: &str| archive_name(line).unwrap_or_default();
        assert_eq!(named("Inst bash (5.2.15-2+b13 Debian:12.11/stable [amd64])"), "bash_5.2.15-2+b13_amd64.deb");
        assert_eq!(named("Inst diffutils (1:3.8-4 Debian:12 [amd64]) []"), "diffutils_1%3a3.8-4_amd64.deb");
        assert_eq!(named("Inst adduser (3.134 Debian:12, Other:1 [all]) [bash:amd64 ]"), "adduser_3.134_all.deb");
        assert_eq!(archive_name("Conf bash (5.2.15-2+b13 Debian:12.11/stable [amd64])"), None);
    }
}
