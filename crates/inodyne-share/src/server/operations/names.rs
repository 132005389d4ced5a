//! Names: finding, making, removing and renaming files.

use std::{ffi::CStr, os::fd::OwnedFd, sync::atomic::Ordering::Relaxed};

use rustix::{
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Uid, chownat, fchmod, linkat, mkdirat, mknodat, openat,
        readlinkat, renameat_with, symlinkat, unlinkat,
    },
    io::Errno,
    process::geteuid,
};

use super::Call;
use crate::{
    fuse::abi::{Attr, CreateIn, FOPEN_KEEP_CACHE, MkDirIn, MkNodIn, OpenOut},
    protocol::invalidation::Invalidation,
    server::{
        Owners,
        attributes::{UNWATCHED, attributes, entry},
        export::{Export, identity, open_beneath, stat, stat_at},
        nodes::NodeId,
    },
};

impl Call<'_> {
    pub(super) fn lookup(&mut self, name: &CStr) -> Result<(), Errno> {
        let directory = self.header.node;
        let found = self.host.export.find(directory)?;
        match self.put_entry(directory, &found, name) {
            Ok(_) => {}
            // That there is nothing may be remembered too; node 0 says so. Should events be lost, nobody knows for which names a guest
            // remembers that, so it must be able to forget them all.
            Err(Errno::NOENT) => {
                let valid = self.valid(self.device(directory));
                let valid = if self.guest.has_epoch.load(Relaxed) { valid } else { valid.min(UNWATCHED) };
                self.reply.put(&entry(0, Attr::default(), valid));
            }
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    pub(super) fn read_link(&mut self) -> Result<(), Errno> {
        let found = self.host.export.find(self.header.node)?;
        let target = readlinkat(&*found, c"", Vec::new())?;
        self.reply.put_bytes(target.to_bytes());
        Ok(())
    }

    pub(super) fn symlink(&mut self, name: &CStr, target: &CStr) -> Result<(), Errno> {
        let directory = self.host.export.find(self.header.node)?;
        symlinkat(target, &*directory, name)?;
        self.changed_name(self.header.node, name);
        self.give_by_name(&directory, name, FileType::Symlink)?;
        self.made(&directory, name)
    }

    /// Regular files, pipes and sockets; never devices.
    pub(super) fn make_node(&mut self, ask: &MkNodIn, name: &CStr) -> Result<(), Errno> {
        let directory = self.host.export.find(self.header.node)?;
        let mode = self.mode(ask.mode);
        match FileType::from_raw_mode(ask.mode) {
            FileType::RegularFile => {
                let file = openat(&*directory, name, NEW | OFlags::WRONLY, mode)?;
                self.changed_name(self.header.node, name);
                self.give_file(&directory, &file, mode)?;
            }
            kind @ (FileType::Fifo | FileType::Socket) => {
                mknodat(&*directory, name, kind, mode, 0)?;
                self.changed_name(self.header.node, name);
                self.give_by_name(&directory, name, kind)?;
            }
            _ => return Err(Errno::PERM),
        }
        self.made(&directory, name)
    }

    pub(super) fn make_directory(&mut self, ask: &MkDirIn, name: &CStr) -> Result<(), Errno> {
        let directory = self.host.export.find(self.header.node)?;
        mkdirat(&*directory, name, Mode::from_raw_mode(ask.mode & 0o7777))?;
        self.changed_name(self.header.node, name);
        self.give_by_name(&directory, name, FileType::Directory)?;
        self.made(&directory, name)
    }

    /// Tells the guest of a name that was just made. Others were told as soon as it was there, since what follows may fail.
    fn made(&mut self, directory: &OwnedFd, name: &CStr) -> Result<(), Errno> {
        self.put_entry(self.header.node, directory, name)?;
        self.say_directory(directory);
        Ok(())
    }

    /// A new regular file belongs to whoever makes it. It is given away through its open descriptor, since its name may refer to another file by now.
    fn give_file(&self, directory: &OwnedFd, file: &OwnedFd, asked: Mode) -> Result<(), Errno> {
        if self.host.options.owners == Owners::Squash {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(u32::from(stat(file)?.stx_mode)) & asked;
        self.give(directory, file)?;
        if mode.intersects(Mode::SUID | Mode::SGID) {
            // Changing the owner has cleared these.
            fchmod(file, mode)?;
        }
        Ok(())
    }

    /// Anything else that was made belongs to whoever makes it, too. The call that makes it returns no descriptor, so the name is looked up again.
    /// What was made has this type, belongs to this process, and has no second name; anything else that has the name by now is somebody else's,
    /// and stays so.
    fn give_by_name(&self, directory: &OwnedFd, name: &CStr, kind: FileType) -> Result<(), Errno> {
        if self.host.options.owners == Owners::Squash {
            return Ok(());
        }
        let found = open_beneath(directory, name)?;
        let stat = stat(&found)?;
        let is_it = FileType::from_raw_mode(stat.stx_mode.into()) == kind
            && Uid::from_raw(stat.stx_uid) == geteuid()
            && (kind == FileType::Directory || stat.stx_nlink == 1);
        if is_it { self.give(directory, &found) } else { Ok(()) }
    }

    fn give(&self, directory: &OwnedFd, file: &OwnedFd) -> Result<(), Errno> {
        // A directory with the set-group-id bit gives its group to what is in it, and the host has done that.
        let is_group_given = u32::from(stat(directory)?.stx_mode) & Mode::SGID.bits() != 0;
        let group = (!is_group_given).then_some(Gid::from_raw(self.header.gid));
        chownat(file, c"", Some(Uid::from_raw(self.header.uid)), group, AtFlags::EMPTY_PATH)
    }

    /// The mode of a new file that is not a directory.
    pub(super) fn mode(&self, mode: u32) -> Mode {
        let kept = if self.host.options.owners == Owners::Squash { 0o1777 } else { 0o7777 };
        Mode::from_raw_mode(mode & kept)
    }

    pub(super) fn create(&mut self, ask: &CreateIn, name: &CStr) -> Result<(), Errno> {
        let directory = self.host.export.find(self.header.node)?;
        let access = OFlags::from_bits_retain(ask.flags) & OFlags::ACCMODE;
        let mode = self.mode(ask.mode);
        // Before anything is made that could not be opened.
        self.host.handles.check_room(self.guest.id)?;
        let file = match openat(&*directory, name, NEW | access, mode) {
            // Somebody else has made it since the guest's kernel looked. Told so, it looks again and checks who may open the file; it checks
            // nothing about a file that is opened in answer to this request.
            Err(Errno::EXIST) if ask.flags as i32 & libc::O_EXCL == 0 => return Err(Errno::STALE),
            made => made?,
        };
        self.changed_name(self.header.node, name);
        self.give_file(&directory, &file, mode)?;
        // By its descriptor: the name may be another file's by now.
        let mut entry = self.entry_of(self.header.node, name, || stat(&file))?;
        let node = entry.node;
        if self.node_of(&directory, name).is_none_or(|named| named != node) {
            // The guest may have been told so before it could know this one.
            (entry.entry_valid, entry.entry_valid_nsec) = (0, 0);
        }
        let added = self.host.handles.add(self.guest.id, node, file);
        let fh = added.inspect_err(|_| self.host.forget(self.guest.id, node, 1))?;
        self.reply.put(&entry);
        self.reply.put(&OpenOut { fh, open_flags: self.keep_cache(node), padding: 0 });
        self.say_directory(&directory);
        Ok(())
    }

    /// Whether what the guest has cached of a file is kept when it is opened.
    pub(super) fn keep_cache(&self, node: NodeId) -> u32 {
        if self.is_told(self.device(node)) { FOPEN_KEEP_CACHE } else { 0 }
    }

    pub(super) fn remove(&mut self, name: &CStr, is_directory: bool) -> Result<(), Errno> {
        let parent = self.header.node;
        let directory = self.host.export.find(parent)?;
        let before = self.node_of(&directory, name);
        unlinkat(&*directory, name, if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() })?;
        self.gone(parent, name, before);
        self.changed_name(parent, name);
        self.say_directory(&directory);
        Ok(())
    }

    pub(super) fn rename(&mut self, new: NodeId, flags: u32, name: &CStr, new_name: &CStr) -> Result<(), Errno> {
        let old = self.header.node;
        let flags = RenameFlags::from_bits(flags).filter(|flags| !flags.contains(RenameFlags::WHITEOUT));
        let flags = flags.ok_or(Errno::INVAL)?;
        let (from, to) = (self.host.export.find(old)?, self.host.export.find(new)?);
        let (moved, replaced) = (self.node_of(&from, name), self.node_of(&to, new_name));
        let is_directory = |at: &OwnedFd, name: &CStr| {
            stat_at(at, name).is_ok_and(|stat| FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory)
        };
        renameat_with(&*from, name, &*to, new_name, flags)?;
        self.gone(old, name, moved);
        self.gone(new, new_name, replaced);
        {
            let mut nodes = self.host.export.nodes();
            if let Some(moved) = moved {
                nodes.named(moved, new, new_name);
            }
            if let (true, Some(replaced)) = (flags.contains(RenameFlags::EXCHANGE), replaced) {
                nodes.named(replaced, old, name);
            }
        }
        self.changed_name(old, name);
        self.changed_name(new, new_name);
        // This is how the guest knows that a directory has another name, and thereby other times.
        if is_directory(&to, new_name) || flags.contains(RenameFlags::EXCHANGE) && is_directory(&from, name) {
            self.say_directory(&from);
        }
        Ok(())
    }

    pub(super) fn link(&mut self, old: NodeId, name: &CStr) -> Result<(), Errno> {
        let file = self.host.find_inside(old)?;
        let directory = self.host.export.find(self.header.node)?;
        linkat(self.host.export.own(), Export::link(&file), &*directory, name, AtFlags::SYMLINK_FOLLOW)?;
        // Others are told also where the rest fails.
        self.changed_name(self.header.node, name);
        self.changes.push(Invalidation::attributes(old));
        self.made(&directory, name)
    }

    /// The node that a name refers to, if anybody knows it.
    fn node_of(&self, directory: &OwnedFd, name: &CStr) -> Option<NodeId> {
        let stat = stat_at(directory, name).ok()?;
        self.host.export.nodes().number(&identity(&stat))
    }

    /// Notes that a node has lost a name.
    fn gone(&mut self, directory: NodeId, name: &CStr, node: Option<NodeId>) {
        let Some(node) = node else { return };
        let forgotten = self.host.export.nodes().unnamed(node, directory, name);
        self.host.export.drop_descriptors(&forgotten);
        self.host.export.drop_removed(node);
        self.changes.push(Invalidation::attributes(node));
    }

    /// Notes that a name refers to something else now.
    fn changed_name(&mut self, directory: NodeId, name: &CStr) {
        self.changes.push(Invalidation::name(directory, name));
        self.changes.push(Invalidation::data(directory));
    }

    /// Adds the attributes of the directory in which something was done. The guest's kernel asks for them before the next change there.
    fn say_directory(&mut self, directory: &OwnedFd) {
        let node = self.header.node;
        let device = self.device(node);
        if self.is_told(device)
            && let Ok(stat) = stat(directory)
        {
            self.reply.changed(node, attributes(self.view().attr(&stat), self.valid(device)));
        }
    }
}

/// Makes a file, and never opens one that is there.
const NEW: OFlags =
    OFlags::CREATE.union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt},
    };

    use super::*;
    use crate::{
        coherence::Link,
        fuse::{abi::InHeader, reply::Reply},
        server::{
            guest::Guest,
            nodes::ROOT,
            tests::{beside_a_secret, host_that},
        },
        transport::{Outbox, pair},
    };

    /// Whoever may write in the directory can put another file in the place of a new one before the new one is given away.
    #[test]
    fn a_new_file_is_given_away_and_none_that_takes_its_place() {
        let (_all, shared) = beside_a_secret();
        let host = host_that(&shared, |options| options.owners = Owners::Keep);
        let guest = Guest::new(host.view((0, 0)), Link::new(1, Outbox::new(pair().0), false), true, true, None, None);
        let header = InHeader { uid: 1000, gid: 1000, ..InHeader::default() };
        let call = Call { host: &host, guest: &guest, header, reply: Reply::reusing(Vec::new()), changes: Vec::new() };
        let path = |name: &str| shared.join(name);
        let is = |name: &str| fs::symlink_metadata(path(name)).map(|file| (file.uid(), file.mode() & 0o7777)).unwrap();
        let directory = host.export.root();
        let asked = Mode::from_raw_mode(0o6711);

        fs::write(path("program"), "").unwrap();
        fs::set_permissions(path("program"), fs::Permissions::from_mode(0o4755)).unwrap();
        let file = openat(directory, c"new", NEW | OFlags::WRONLY, asked).unwrap();
        fs::rename(path("new"), path("moved")).unwrap();
        fs::hard_link(path("program"), path("new")).unwrap();
        call.give_file(directory, &file, asked).unwrap();
        assert_eq!((is("moved"), is("program")), ((1000, 0o6711), (0, 0o4755)));

        // Those that are not opened: of another type, with a second name, and somebody else's.
        let pipe = |name: &CStr| mknodat(directory, name, FileType::Fifo, Mode::RUSR, 0).unwrap();
        pipe(c"pipe");
        fs::hard_link(path("pipe"), path("second")).unwrap();
        fs::create_dir(path("other")).unwrap();
        std::os::unix::fs::chown(path("other"), Some(7), None).unwrap();
        for (name, kind) in [(c"new", FileType::Fifo), (c"second", FileType::Fifo), (c"other", FileType::Directory)] {
            let before = is(name.to_str().unwrap());
            call.give_by_name(directory, name, kind).unwrap();
            assert_eq!(is(name.to_str().unwrap()), before, "{name:?}");
        }
        pipe(c"made");
        call.give_by_name(directory, c"made", FileType::Fifo).unwrap();
        assert_eq!(is("made"), (1000, 0o400));
    }

    /// The same with the name of a file that a guest has made and opened.
    #[test]
    fn a_new_file_that_is_open_is_told_of_as_itself() {
        let (_all, shared) = beside_a_secret();
        let host = host_that(&shared, |_| ());
        let guest = Guest::new(host.view((0, 0)), Link::new(1, Outbox::new(pair().0), false), true, true, None, None);
        let header = InHeader { node: ROOT, ..InHeader::default() };
        let call = Call { host: &host, guest: &guest, header, reply: Reply::reusing(Vec::new()), changes: Vec::new() };
        let directory = host.export.root();
        let file = openat(directory, c"new", NEW | OFlags::WRONLY, Mode::RUSR).unwrap();
        fs::write(shared.join("other"), "other").unwrap();
        fs::rename(shared.join("other"), shared.join("new")).unwrap();
        let made = call.entry_of(ROOT, c"new", || stat(&file)).unwrap().node;
        host.handles.add(1, made, file).unwrap();
        let other = call.entry_of(ROOT, c"new", || stat_at(directory, c"new")).unwrap().node;
        assert_ne!(made, other);
        for node in [made, other] {
            let found = identity(&stat(&host.find(node).unwrap()).unwrap());
            assert_eq!(host.export.nodes().identity(node), Some(found));
        }
    }
}
