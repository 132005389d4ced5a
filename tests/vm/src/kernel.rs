//! The kernels of the matrix (`kernels.toml`), fetched from their distribution's packages and unpacked into the cache.
//!
//! A package is never installed: its kernel and modules are unpacked below `kernels/` in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::apt::{self, Suite};
use crate::failure::{Failure, output, wanted};

const LIST: &str = include_str!("../kernels.toml");

/// A line of `kernels.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What it is called here, in the table and on the command line.
    pub name: String,
    /// The suite that has it.
    pub suite: String,
    /// The version that its package's name begins with; the newest such package is taken.
    pub release: String,
    /// `cloud` or `rt`; nothing for the usual one.
    #[serde(default)]
    pub flavour: Option<String>,
    /// The architecture, by Debian's name.
    #[serde(default = "amd64")]
    pub arch: String,
    /// Whether inodyne is to work there; otherwise it is to refuse in one line.
    #[serde(default = "yes")]
    pub supported: bool,
    /// Whether it belongs to the short matrix.
    #[serde(default)]
    pub short: bool,
}

fn amd64() -> String {
    "amd64".into()
}

fn yes() -> bool {
    true
}

/// A kernel that can be booted.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Where it comes from.
    pub entry: Entry,
    /// What `uname -r` says in it.
    pub release: String,
    /// The package and its version.
    pub package: String,
    /// The kernel itself.
    pub image: PathBuf,
    /// `lib/modules/RELEASE`, with its lists of dependencies.
    pub modules: PathBuf,
    /// What is kept of this kernel in the cache.
    pub directory: PathBuf,
}

/// All kernels, oldest first.
#[must_use]
pub fn all() -> Vec<Entry> {
    #[derive(Deserialize)]
    struct List {
        kernel: Vec<Entry>,
    }
    let list: List = toml::from_str(LIST).expect("kernels.toml is well-formed");
    list.kernel
}

/// The kernel of this name.
///
/// # Errors
/// There is none.
pub fn named(name: &str) -> Result<Entry, Failure> {
    let all = all();
    let names: Vec<&str> = all.iter().map(|entry| entry.name.as_str()).collect();
    let unknown =
        || Failure::new(format_args!("no kernel {name} in tests/vm/kernels.toml; there are {}", names.join(", ")));
    all.iter().find(|entry| entry.name == name).cloned().ok_or_else(unknown)
}

/// Where everything that is fetched and built is kept: `vm` in `INODYNE_CACHE`, or in `~/.cache/inodyne`.
#[must_use]
pub fn cache() -> PathBuf {
    let given = std::env::var_os("INODYNE_CACHE").map(PathBuf::from);
    let standard = || std::env::var_os("XDG_CACHE_HOME").map(|cache| Path::new(&cache).join("inodyne"));
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into())).join(".cache/inodyne");
    given.or_else(standard).unwrap_or_else(home).join("vm")
}

impl Entry {
    /// The kernel from the cache; fetched first where it is not there, or where a newer one is asked for.
    ///
    /// # Errors
    /// It is not in the suite, or cannot be fetched.
    pub fn fetch(&self, cache: &Path, refresh: bool) -> Result<Kernel, Failure> {
        let directory = cache.join("kernels").join(&self.name);
        let _lock = lock(cache)?;
        if refresh || !directory.join("package").exists() {
            self.unpack_newest(cache, &directory, refresh)?;
        }
        self.in_cache(directory)
    }

    fn in_cache(&self, directory: PathBuf) -> Result<Kernel, Failure> {
        let path = directory.join("package");
        let package = fs::read_to_string(&path).map_err(Failure::reading(&path))?;
        let modules = [directory.join("lib/modules"), directory.join("usr/lib/modules")];
        let parent = modules.into_iter().find(|path| path.is_dir());
        let parent = parent.ok_or_else(|| Failure::new(format_args!("no modules below {}", directory.display())))?;
        let mut releases = fs::read_dir(&parent).map_err(Failure::reading(&parent))?.flatten();
        let release = releases.next().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let release = release.ok_or_else(|| Failure::new(format_args!("{} is empty", parent.display())))?;
        let image = wanted(directory.join("boot").join(format!("vmlinuz-{release}")))
            .or_else(|_| wanted(parent.join(&release).join("vmlinuz")))?;
        let modules = parent.join(&release);
        Ok(Kernel { entry: self.clone(), release, package: package.trim().to_owned(), image, modules, directory })
    }

    fn unpack_newest(&self, cache: &Path, directory: &Path, refresh: bool) -> Result<(), Failure> {
        let suite = Suite::open(cache, &self.suite, &self.arch, refresh)?;
        let names = suite.names(&format!("linux-image-{}", self.release))?;
        let package = newest(names.iter().map(String::as_str), self).ok_or_else(|| {
            Failure::new(format_args!("{} has no kernel {} for {}", self.suite, self.release, self.arch))
        })?;
        let version = suite.field(package, "Version")?;
        let mut packages = vec![package.to_owned()];
        packages.extend(parts(&suite.field(package, "Depends")?));
        let parent = directory.parent().expect("below the cache");
        fs::create_dir_all(parent).map_err(Failure::writing(parent))?;
        let fresh = tempfile::tempdir_in(parent).map_err(Failure::writing(parent))?;
        for deb in suite.download(&packages, fresh.path())? {
            apt::unpack(&deb, fresh.path())?;
            fs::remove_file(&deb).map_err(Failure::writing(&deb))?;
        }
        let stamp = fresh.path().join("package");
        fs::write(&stamp, format!("{package} {version}\n")).map_err(Failure::writing(&stamp))?;
        let kernel = self.in_cache(fresh.path().to_owned())?;
        // depmod wants lib/modules below a base, wherever that is.
        let base = kernel.modules.ancestors().nth(3).expect("lib/modules/RELEASE below the cache");
        output(Command::new("depmod").arg("-b").arg(base).arg(&kernel.release))?;
        let _ = fs::remove_dir_all(directory);
        fs::rename(fresh.keep(), directory).map_err(Failure::writing(directory))
    }
}

/// Held while the cache is changed.
pub(crate) fn lock(cache: &Path) -> Result<fs::File, Failure> {
    fs::create_dir_all(cache).map_err(Failure::writing(cache))?;
    let path = cache.join("lock");
    let file = fs::File::options().create(true).append(true).open(&path).map_err(Failure::writing(&path))?;
    file.lock().map_err(Failure::writing(&path))?;
    Ok(file)
}

/// Since 6.19 the package of a kernel only depends on those that hold it.
fn parts(depends: &str) -> Vec<String> {
    let names = depends.split([',', '|']).filter_map(|word| word.split_whitespace().next());
    let wanted = |name: &&str| name.starts_with("linux-binary-") || name.starts_with("linux-modules-");
    names.filter(wanted).map(str::to_owned).collect()
}

/// The newest of these packages that is of this release, flavour and architecture.
fn newest<'a>(names: impl Iterator<Item = &'a str>, entry: &Entry) -> Option<&'a str> {
    let flavour = entry.flavour.as_ref().map(|flavour| format!("{flavour}-")).unwrap_or_default();
    let suffix = format!("-{flavour}{}", entry.arch);
    let version = |name: &'a str| {
        let version = name.strip_prefix("linux-image-")?.strip_suffix(&suffix)?;
        let rest = version.strip_prefix(&entry.release)?;
        let is_release = rest.is_empty() || rest.starts_with(['.', '-', '+']);
        // "6.1.0-50-cloud" has a flavour, and another one than was asked for.
        let is_version = version.split('-').all(|part| part.starts_with(|c: char| c.is_ascii_digit()));
        (is_release && is_version).then(|| numbers(version))
    };
    names.filter_map(|name| Some((version(name)?, name))).max().map(|(_, name)| name)
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(release: &str, flavour: Option<&str>) -> Entry {
        let toml = format!("name = 'x'\nsuite = 's'\nrelease = '{release}'\n");
        Entry { flavour: flavour.map(str::to_owned), ..toml::from_str(&toml).unwrap() }
    }

    #[test]
    fn the_newest_of_the_release_and_flavour_is_taken() {
        let names = [
            "linux-image-6.1.0-47-amd64",
            "linux-image-6.1.0-50-amd64",
            "linux-image-6.1.0-50-amd64-unsigned",
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-51-cloud-amd64",
            "linux-image-6.12.90+deb12.1-amd64",
            "linux-image-6.12.90+deb12-amd64",
        ];
        let newest = |entry| newest(names.iter().copied(), &entry);
        assert_eq!(newest(entry("6.1", None)), Some("linux-image-6.1.0-50-amd64"));
        assert_eq!(newest(entry("6.1", Some("cloud"))), Some("linux-image-6.1.0-51-cloud-amd64"));
        assert_eq!(newest(entry("6.12", None)), Some("linux-image-6.12.90+deb12.1-amd64"));
        assert_eq!(newest(entry("6.1", Some("rt"))), None);
    }

    #[test]
    fn a_kernel_in_several_packages_is_fetched_whole() {
        let depends =
            "dracut | initramfs-tools (>= 0.1), linux-base-7.3 (= 1), linux-binary-7.3 (= 1), linux-modules-7.3 (= 1)";
        assert_eq!(parts(depends), ["linux-binary-7.3", "linux-modules-7.3"]);
    }

    #[test]
    fn names_in_the_list_are_different() {
        let mut names: Vec<String> = all().into_iter().map(|entry| entry.name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
