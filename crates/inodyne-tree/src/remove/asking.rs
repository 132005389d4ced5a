//! Deleting with a person's consent: one entry after the other, in the order of the listing, asking first.
//!
//! Nothing here is fast, since a person is slower. It uses the same nodes and the same way of opening directories as the
//! parallel delete, so it is as safe and needs as few descriptors. Which questions come, and when, is as in GNU rm:
//! before a directory is entered, for each entry, and again before the then empty directory is removed.

use std::{
    ffi::{CStr, CString, OsStr},
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering},
};

use rustix::{
    fs::{Access, AtFlags, FileType, RawDir, Stat, accessat, statat, unlinkat},
    io::Errno,
    process::geteuid,
};

use super::{
    Control, Failure, Observer, Reason, RemoveOptions, Removed,
    dir_fd_cache::DirFdCache,
    node::{Node, split_operand},
    open::{Crossing, changes_device},
    report::telling,
};
use crate::descriptors::descriptor_budget;

/// What a person is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// As the user would write it.
    pub path: &'a OsStr,
    /// Entering a directory, rather than removing something.
    pub enter: bool,
    /// What it is.
    pub kind: FileType,
    /// A file without contents.
    pub empty_file: bool,
    /// The user may not write to it.
    pub write_protected: bool,
    /// A directory that cannot even be read.
    pub unreadable: bool,
}

/// Whoever answers.
pub trait Decide {
    /// Whether to do it. Not every question needs a person: the answer may follow from options.
    fn decide(&mut self, question: &Question<'_>) -> bool;
}

/// Removes one operand with all it holds, asking about each. `operand` may be of any type.
pub fn remove_asking(
    operand: &OsStr,
    options: &RemoveOptions,
    control: &Control,
    observer: &dyn Observer,
    decide: &mut dyn Decide,
) {
    use std::os::unix::ffi::OsStrExt;
    let (prefix, name, slashes) = split_operand(operand.as_bytes());
    let base = Node::base(prefix);
    let Ok(name) = CString::new(name) else { return };
    let fd_cache = DirFdCache::new(descriptor_budget() / 2);
    let mut walk = Walk { options, control, observer, decide, fd_cache, frames: Vec::new() };
    walk.entry(&base, &name, Some(!slashes.is_empty()));
    while let Some(frame) = walk.frames.last_mut() {
        if control.is_stopped() {
            return;
        }
        match frame.names.pop() {
            Some(name) => {
                let node = frame.node.clone();
                walk.entry(&node, &name, None);
            }
            None => walk.leave(),
        }
    }
}

struct Walk<'a> {
    options: &'a RemoveOptions,
    control: &'a Control,
    observer: &'a dyn Observer,
    decide: &'a mut dyn Decide,
    fd_cache: DirFdCache,
    /// The directories on the way to where we are.
    frames: Vec<Frame>,
}

struct Frame {
    node: Arc<Node>,
    /// What is still to be done, last first.
    names: Vec<CString>,
    /// Whether the person wants something in it kept. In a dry run, nothing else says that it is not empty.
    has_kept: bool,
}

impl Walk<'_> {
    /// Asks about, and deals with, one entry of `parent`. For an operand, `operand` says whether slashes follow it.
    fn entry(&mut self, parent: &Arc<Node>, name: &CStr, operand: Option<bool>) {
        let dealt = self.fd_cache.descriptor(parent).and_then(|descriptor| {
            let stat = statat(&*descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let node = match operand {
                    Some(slash) => Node::operand(parent, name.into(), 0, slash, None),
                    None => Node::child(parent, name, 0),
                };
                self.directory(&descriptor, &stat, node);
                return Ok(());
            }
            self.file(&descriptor, &stat, parent, name)
        });
        if let Err(errno) = dealt {
            self.tell(parent, Some(name), Reason::Refused(errno));
        }
    }

    fn file(&mut self, descriptor: &OwnedFd, stat: &Stat, parent: &Arc<Node>, name: &CStr) -> Result<(), Errno> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let path = parent.path(Some(name));
        let question = Question {
            path: &path,
            enter: false,
            kind,
            empty_file: kind == FileType::RegularFile && stat.st_size == 0,
            write_protected: kind != FileType::Symlink && is_write_protected(descriptor, name)?,
            unreadable: false,
        };
        // Like GNU rm, which still asks about the directory above, even after an error up to here: it finds out that it is not
        // empty when it tries.
        if !self.decide.decide(&question) {
            self.keep();
            return Ok(());
        }
        if self.options.dry_run {
            self.control.count_allocated(stat);
        } else {
            unlinkat(descriptor, name, AtFlags::empty()).inspect_err(|_| parent.spoil())?;
        }
        self.control.files.fetch_add(1, Ordering::Relaxed);
        if self.observer.wants_removed() {
            self.observer.removed(&path, Removed::File);
        }
        Ok(())
    }

    fn directory(&mut self, parent: &OwnedFd, stat: &Stat, node: Arc<Node>) {
        let write_protected = match is_write_protected(parent, &node.name) {
            Ok(protected) => protected,
            Err(errno) => return self.fail(&node, Reason::Refused(errno)),
        };
        let names = self.list(&node);
        if let Err(Errno::XDEV) = names {
            return self.fail(&node, Reason::OtherDevice);
        }
        let is_empty = names.as_ref().is_ok_and(Vec::is_empty);
        // The caller may have found it empty, before something was put into it.
        if self.options.only_empty && names.as_ref().is_ok_and(|names| !names.is_empty()) {
            return self.fail(&node, Reason::Refused(Errno::NOTEMPTY));
        }
        let path = node.path(None);
        let question = Question {
            path: &path,
            enter: !is_empty,
            kind: FileType::from_raw_mode(stat.st_mode),
            empty_file: false,
            write_protected,
            unreadable: names.is_err(),
        };
        if !self.decide.decide(&question) {
            return spoil_parent(&node);
        }
        match names {
            Ok(names) if !names.is_empty() => self.frames.push(Frame { node, names, has_kept: false }),
            // One that cannot be read can be removed if it is empty.
            other => {
                if let Err(removing) = self.remove_directory(&node, false) {
                    let reason = other.map_or_else(|opening| telling(opening, removing), |_| Reason::Refused(removing));
                    self.fail(&node, reason);
                }
            }
        }
    }

    /// Everything in the directory on top is dealt with: remove it too, unless something stayed.
    fn leave(&mut self) {
        let Some(Frame { node, has_kept, .. }) = self.frames.pop() else { return };
        if node.is_spoiled() {
            return spoil_parent(&node);
        }
        let path = node.path(None);
        let protected = above(&node).and_then(|parent| is_write_protected(&parent, &node.name));
        let question = Question {
            path: &path,
            enter: false,
            kind: FileType::Directory,
            empty_file: false,
            write_protected: protected.unwrap_or(false),
            unreadable: false,
        };
        if !self.decide.decide(&question) {
            return self.keep();
        }
        if let Err(errno) = self.remove_directory(&node, has_kept) {
            self.fail(&node, Reason::Refused(errno));
        }
    }

    /// The person wants something kept that is in the directory on top.
    fn keep(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.has_kept = true;
        }
    }

    fn remove_directory(&self, node: &Arc<Node>, has_kept: bool) -> Result<(), Errno> {
        if self.options.dry_run && has_kept {
            return Err(Errno::NOTEMPTY);
        }
        if !self.options.dry_run {
            unlinkat(&*above(node)?, &node.name, AtFlags::REMOVEDIR)?;
        }
        self.control.directories.fetch_add(1, Ordering::Relaxed);
        if self.observer.wants_removed() {
            self.observer.removed(&node.path(None), Removed::Directory);
        }
        Ok(())
    }

    /// Opens a directory, keeps it open, and gives its names, last first.
    fn list(&mut self, node: &Arc<Node>) -> Result<Vec<CString>, Errno> {
        let crossing = if self.options.cross_mounts { Crossing::Allowed } else { Crossing::Refused };
        let opened = Arc::new(node.open(crossing)?);
        if self.options.one_device && node.operand.is_none() && changes_device(&*node.parent().descriptor()?, &*opened)?
        {
            return Err(Errno::XDEV);
        }
        node.set_open(opened.clone());
        self.fd_cache.note(node);
        let mut names = Vec::new();
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = RawDir::new(&*opened, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        names.reverse();
        Ok(names)
    }

    /// Reports that a directory stays, so that those above it need not be tried.
    fn fail(&self, node: &Node, reason: Reason) {
        spoil_parent(node);
        self.tell(node, None, reason);
    }

    fn tell(&self, node: &Node, entry: Option<&CStr>, reason: Reason) {
        self.control.failures.fetch_add(1, Ordering::Relaxed);
        self.observer.failed(&Failure { path: &node.path(entry), reason });
    }
}

/// The descriptor of the directory that `node` is in, found from the node itself if need be: from the root it may be far.
fn above(node: &Node) -> Result<Arc<OwnedFd>, Errno> {
    match node.if_open() {
        Some(own) => node.parent().descriptor_from(&own),
        None => node.parent().descriptor(),
    }
}

fn spoil_parent(node: &Node) {
    if let Some(parent) = &node.parent {
        parent.spoil();
    }
}

/// Whether permissions keep the user from writing, which they never do for root, whatever else does.
fn is_write_protected(directory: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    if geteuid().is_root() {
        return Ok(false);
    }
    match accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(false),
        Err(Errno::ACCESS) => Ok(true),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Yes;

    impl Decide for Yes {
        fn decide(&mut self, _: &Question<'_>) -> bool {
            true
        }
    }

    #[derive(Default)]
    struct Reasons(Mutex<Vec<String>>);

    impl Observer for Reasons {
        fn failed(&self, failure: &Failure<'_>) {
            self.0.lock().expect("no panic").push(format!("{:?}", failure.reason));
        }
    }

    #[test]
    fn a_directory_that_holds_something_stays_where_only_empty_ones_go() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let (control, reasons) = (Control::default(), Reasons::default());
        let options = RemoveOptions { only_empty: true, ..Default::default() };
        for name in ["full", "empty"] {
            std::fs::create_dir(place.path().join(name)).expect("made");
        }
        std::fs::write(place.path().join("full/file"), "").expect("written");
        for name in ["full", "empty"] {
            remove_asking(place.path().join(name).as_os_str(), &options, &control, &reasons, &mut Yes);
        }
        assert!(place.path().join("full/file").exists() && !place.path().join("empty").exists());
        assert_eq!(*reasons.0.lock().expect("no panic"), [format!("{:?}", Reason::Refused(Errno::NOTEMPTY))]);
    }

    /// Keeps what has this name.
    struct Keeping(&'static str);

    impl Decide for Keeping {
        fn decide(&mut self, question: &Question<'_>) -> bool {
            question.enter || !std::path::Path::new(question.path).ends_with(self.0)
        }
    }

    #[test]
    fn a_dry_run_counts_no_directory_in_which_something_is_kept() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let counted = |kept| {
            let (control, reasons) = (Control::default(), Reasons::default());
            let options = RemoveOptions { dry_run: true, ..Default::default() };
            let tree = place.path().join("tree");
            remove_asking(tree.as_os_str(), &options, &control, &reasons, &mut Keeping(kept));
            (control.files(), control.directories(), control.failures())
        };
        std::fs::create_dir_all(place.path().join("tree/sub")).expect("made");
        std::fs::write(place.path().join("tree/sub/file"), "").expect("written");
        assert_eq!(counted("nothing"), (1, 2, 0));
        assert_eq!(counted("file"), (0, 0, 1));
        assert_eq!(counted("sub"), (1, 0, 1));
    }
}
