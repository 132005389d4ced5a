//! Attributes: reading and setting them.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chmodat, chownat,
        fstatvfs, ftruncate, utimensat,
    },
    io::Errno,
};

use super::Call;
use crate::{
    fuse::abi::{GETATTR_FH, GetAttrIn, SetAttrIn, StatFsOut, set},
    protocol::invalidation::Invalidation,
    server::{
        Owners,
        attributes::attributes,
        export::{Export, identity, stat},
        sandbox::setting_group_id,
    },
};

impl Call<'_> {
    pub(super) fn get_attributes(&mut self, ask: &GetAttrIn) -> Result<(), Errno> {
        let found = if ask.flags & GETATTR_FH != 0 {
            self.host.handles.get(self.guest.id, ask.fh)?.file.clone()
        } else {
            self.host.find(self.header.node)?
        };
        self.put_attributes(&found)
    }

    fn put_attributes(&mut self, found: &OwnedFd) -> Result<(), Errno> {
        let stat = stat(found)?;
        let attr = self.view().attr(&stat);
        self.reply.put(&attributes(attr, self.valid(identity(&stat).device)));
        Ok(())
    }

    pub(super) fn set_attributes(&mut self, ask: &SetAttrIn) -> Result<(), Errno> {
        let node = self.header.node;
        let has = |flag| ask.valid & flag != 0;
        let found = self.host.find(node)?;
        let open = has(set::FH).then(|| self.host.handles.get(self.guest.id, ask.fh)).transpose()?;
        if open.as_ref().is_some_and(|open| open.node != node) {
            return Err(Errno::BADF);
        }
        // Others are told also where only a part of it can be done.
        self.changes.push(Invalidation::Node { node, data: has(set::SIZE) });
        // In the order in which the kernel's own file systems check: whoever may not change one of them changes none.
        if has(set::UID | set::GID) && self.host.options.owners == Owners::Keep {
            let uid = has(set::UID).then_some(Uid::from_raw(ask.uid));
            let gid = has(set::GID).then_some(Gid::from_raw(ask.gid));
            chownat(&*found, c"", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        if has(set::SIZE) {
            match &open {
                Some(open) => ftruncate(&*open.file, ask.size)?,
                None => ftruncate(&self.host.export.open(&*self.host.find_inside(node)?, OFlags::WRONLY)?, ask.size)?,
            }
        }
        if has(set::MODE) {
            let change = |mode| chmodat(self.host.export.own(), Export::link(&found), mode, AtFlags::empty());
            match FileType::from_raw_mode(stat(&found)?.stx_mode.into()) {
                FileType::Directory => setting_group_id(|| change(Mode::from_raw_mode(ask.mode & 0o7777)))?,
                _ => change(self.mode(ask.mode))?,
            }
        }
        if has(set::KILL_SUIDGID) {
            self.strip_set_ids(&found)?;
        }
        if has(set::ATIME | set::MTIME) {
            let time = |given, now, seconds: u64, nanos: u32| match (has(given), has(now)) {
                (false, _) => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
                (true, true) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
                (true, false) => Timespec { tv_sec: seconds as i64, tv_nsec: nanos.into() },
            };
            let times = Timestamps {
                last_access: time(set::ATIME, set::ATIME_NOW, ask.atime, ask.atime_nsec),
                last_modification: time(set::MTIME, set::MTIME_NOW, ask.mtime, ask.mtime_nsec),
            };
            utimensat(self.host.export.own(), Export::link(&found), &times, AtFlags::empty())?;
        }
        self.put_attributes(&found)
    }

    /// What writing to a file does to its set-user-id bit, and to its set-group-id bit if the group may execute it. The host's kernel does
    /// not do it for root.
    pub(super) fn strip_set_ids(&self, found: &OwnedFd) -> Result<(), Errno> {
        let mode = u32::from(stat(found)?.stx_mode);
        let group = if mode & 0o010 != 0 { 0o2000 } else { 0 };
        let stripped = mode & !(0o4000 | group);
        if FileType::from_raw_mode(mode) == FileType::RegularFile && stripped != mode {
            let mode = Mode::from_raw_mode(stripped & 0o7777);
            chmodat(self.host.export.own(), Export::link(found), mode, AtFlags::empty())?;
        }
        Ok(())
    }

    /// The same for requests with which the guest's kernel leaves it to the host, but cannot say so (`FUSE_HANDLE_KILLPRIV_V2`). It would
    /// not do it for root.
    pub(super) fn strip_set_ids_unasked(&self, found: &OwnedFd) -> Result<(), Errno> {
        if self.header.uid == 0 { Ok(()) } else { self.strip_set_ids(found) }
    }

    pub(super) fn stat_file_system(&mut self) -> Result<(), Errno> {
        let all = fstatvfs(&*self.host.find(self.header.node)?)?;
        self.reply.put(&StatFsOut {
            blocks: all.f_blocks,
            bfree: all.f_bfree,
            bavail: all.f_bavail,
            files: all.f_files,
            ffree: all.f_ffree,
            bsize: all.f_bsize as u32,
            namelen: all.f_namemax as u32,
            frsize: all.f_frsize as u32,
            ..StatFsOut::default()
        });
        Ok(())
    }
}
