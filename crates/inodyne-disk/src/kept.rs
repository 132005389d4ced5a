//! What was measured earlier: a versioned JSON file for each disk in the user's state directory (`XDG_STATE_HOME`).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use inodyne_model::block::BlockIo;
use inodyne_model::disk_limits::DiskLimits;
use inodyne_recording::file::{Access, create_directories, write_whole};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::DiskError;
use crate::identity::Identity;

/// The version of such files.
const SCHEMA: &str = "inodyne-disk/1";

/// A longer file is not one of ours.
const MOST_BYTES: u64 = 64 << 10;

/// Disks and what they can do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept(Vec<(Identity, DiskLimits)>);

/// A file that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// A file's contents.
#[derive(Debug, Serialize, Deserialize)]
struct Contents {
    schema: String,
    disk: Identity,
    limits: DiskLimits,
}

/// The directory of the files; `None` if nothing says where it could be.
pub fn directory() -> Option<PathBuf> {
    let own = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = own("XDG_STATE_HOME").or_else(|| Some(own("HOME")?.join(".local/state")))?;
    Some(state.join("inodyne/disks"))
}

impl Kept {
    /// Everything in a directory, sorted by name, and what is ignored there. If there is no directory, nothing is kept.
    pub fn load(directory: &Path) -> (Kept, Vec<Ignored>) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        let (mut kept, mut ignored) = (Vec::new(), Vec::new());
        for path in paths {
            match read(&path) {
                Ok(Contents { disk, limits, .. }) => kept.push((disk, limits)),
                Err(reason) => ignored.push(Ignored { path, reason }),
            }
        }
        kept.sort_by(|a, b| (&a.0.name, a.1.measured_unix_s).cmp(&(&b.0.name, b.1.measured_unix_s)));
        ignored.sort_by(|a, b| a.path.cmp(&b.path));
        (Kept(kept), ignored)
    }

    /// All disks and what they can do, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &(Identity, DiskLimits)> {
        self.0.iter()
    }

    /// Adds to each disk that did something what it can do, if that is known. The disks must still be present.
    pub fn add_to(&self, block: &mut BlockIo) {
        if self.0.is_empty() {
            return;
        }
        for disk in &mut block.disks {
            disk.limits = Identity::of(&disk.number).and_then(|identity| self.of(&identity)).cloned();
        }
    }

    fn of(&self, disk: &Identity) -> Option<&DiskLimits> {
        self.0.iter().find(|(kept, _)| kept.is_same(disk)).map(|(_, limits)| limits)
    }
}

/// Saves what a disk can do in a directory, replacing what was kept for the same disk. Returns the file.
///
/// # Errors
/// The file cannot be written.
pub fn save(directory: &Path, disk: &Identity, limits: &DiskLimits) -> Result<PathBuf, DiskError> {
    let path = directory.join(file_name(disk));
    let contents = Contents { schema: SCHEMA.to_owned(), disk: disk.clone(), limits: limits.clone() };
    let written = create_directories(directory).and_then(|()| {
        write_whole(&path, Access::ByUmask, |out| {
            serde_json::to_writer_pretty(&mut *out, &contents)?;
            out.write_all(b"\n")
        })
    });
    written.map_err(|source| DiskError::NotKept { path: path.clone(), source })?;
    forget(directory, &Identity::all());
    Ok(path)
}

/// Removes what is kept for disks that can never come back.
fn forget(directory: &Path, here: &[Identity]) {
    for (disk, _) in Kept::load(directory).0.iter() {
        if disk.ends_with_boot() && !here.iter().any(|one| one.is_same(disk)) {
            // The file is useless but harmless, so a failure does not matter.
            let _ = fs::remove_file(directory.join(file_name(disk)));
        }
    }
}

/// Derived from what only this disk has.
fn file_name(disk: &Identity) -> String {
    let (id, size_bytes, model) = disk.key();
    let key = format!("{id}\n{size_bytes}\n{}", model.unwrap_or_default());
    format!("{:016x}.json", xxh3_64(key.as_bytes()))
}

/// What is in a file. The error is the reason to ignore it.
fn read(path: &Path) -> Result<Contents, String> {
    let text = |error: io::Error| error.to_string();
    // Opening a pipe would block until it has a writer.
    if !fs::metadata(path).map_err(text)?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(text)?.take(MOST_BYTES).read_to_end(&mut bytes).map_err(text)?;
    let damaged = |error: serde_json::Error| format!("it is damaged: {error}");
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(damaged)?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => {}
        Some(schema) => return Err(format!("this inodyne does not know its version {schema}")),
        None => return Err("it has no version".to_owned()),
    }
    let contents: Contents = serde_json::from_value(value).map_err(damaged)?;
    let named = path.file_name().is_some_and(|name| name == file_name(&contents.disk).as_str());
    named.then_some(contents).ok_or_else(|| "it is of another disk than its name says".to_owned())
}

#[cfg(test)]
mod tests {
    use inodyne_model::block::Disk;
    use inodyne_model::sample;

    use super::*;

    fn disk(name: &str, id: &str) -> Identity {
        Identity { name: name.to_owned(), size_bytes: 1 << 30, model: None, id: Some(id.to_owned()) }
    }

    #[test]
    fn what_is_kept_is_found_again_and_newer_takes_the_place_of_older() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("inodyne/disks");
        assert_eq!(Kept::load(&directory), (Kept::default(), vec![]));
        let older = DiskLimits { reads_per_s: 1, ..sample::disk_limits() };
        for (disk, limits) in [
            (disk("sdb", "wwid 1"), &older),
            (disk("sda", "wwid 1"), &sample::disk_limits()),
            (disk("sdb", "wwid 2"), &older),
        ] {
            save(&directory, &disk, limits).unwrap();
        }
        let (kept, ignored) = Kept::load(&directory);
        assert_eq!((kept.iter().count(), ignored), (2, vec![]));
        // It is the same disk, whatever it is called.
        assert_eq!(kept.of(&disk("sdz", "wwid 1")), Some(&sample::disk_limits()));
        assert_eq!(kept.of(&disk("sda", "wwid 3")), None);
        assert_eq!(kept.of(&Identity { size_bytes: 1, ..disk("sda", "wwid 1") }), None);
    }

    #[test]
    fn what_is_damaged_or_of_another_disk_is_ignored_with_a_reason() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path();
        let good = save(directory, &disk("sda", "wwid 1"), &sample::disk_limits()).unwrap();
        let text = fs::read_to_string(&good).unwrap();
        fs::copy(&good, directory.join("other.json")).unwrap();
        fs::write(directory.join("half.json"), &text[..text.len() / 2]).unwrap();
        fs::write(directory.join("newer.json"), text.replace(SCHEMA, "inodyne-disk/2")).unwrap();
        fs::write(directory.join("unrelated.txt"), "").unwrap();
        fs::create_dir(directory.join("directory.json")).unwrap();
        let (kept, ignored) = Kept::load(directory);
        assert_eq!(kept.iter().count(), 1);
        let said: Vec<(&str, &str)> = ignored
            .iter()
            .map(|one| (one.path.file_stem().unwrap().to_str().unwrap(), one.reason.split(':').next().unwrap()))
            .collect();
        let expected = [
            ("directory", "it is not a file"),
            ("half", "it is damaged"),
            ("newer", "this inodyne does not know its version inodyne-disk/2"),
            ("other", "it is of another disk than its name says"),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn what_can_never_be_there_again_is_forgotten() {
        let scratch = tempfile::tempdir().unwrap();
        let limits = sample::disk_limits();
        let [lasting, gone, here] = ["wwid 1", "disk 7 of boot b", "disk 8 of boot b"].map(|id| disk("sda", id));
        for one in [&lasting, &gone, &here] {
            let contents = Contents { schema: SCHEMA.to_owned(), disk: one.clone(), limits: limits.clone() };
            fs::write(scratch.path().join(file_name(one)), serde_json::to_vec(&contents).unwrap()).unwrap();
        }
        forget(scratch.path(), std::slice::from_ref(&here));
        let (kept, _) = Kept::load(scratch.path());
        assert_eq!([&lasting, &gone, &here].map(|one| kept.of(one).is_some()), [true, false, true]);
    }

    #[test]
    fn a_disk_of_which_nothing_is_known_is_told_nothing() {
        let mut block =
            BlockIo { disks: vec![Disk { number: "0:0".to_owned(), ..Disk::default() }], ..BlockIo::default() };
        Kept(vec![(disk("sda", "wwid 1"), sample::disk_limits())]).add_to(&mut block);
        assert_eq!(block.disks[0].limits, None);
    }
}
