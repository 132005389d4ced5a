//! Reading directories: always with types and, unless they are to be withheld, with the attributes of all entries, so that nobody
//! has to ask for them one by one.
//!
//! Directories are not opened by guests. Each request says how far the last one got, in the host's own terms.

use std::{ffi::CStr, mem::MaybeUninit, os::fd::OwnedFd, sync::atomic::Ordering::Relaxed};

use rustix::{
    fs::{FileType, OFlags, RawDir, SeekFrom, seek},
    io::Errno,
};
use zerocopy::IntoBytes;

use super::Call;
use crate::{
    fuse::abi::{Dirent, EntryOut, OpenOut, ReadIn, padded},
    protocol::frame::MOST_DATA,
    server::export::stat_at,
};

impl Call<'_> {
    /// Nothing needs to be opened. Where the answer is that this is unknown, the kernel never asks again, and keeps what it reads of directories
    /// until their times change; so it must hear of changes, since two may come within one tick of the host's clock.
    pub(super) fn open_directory(&mut self) -> Result<(), Errno> {
        if self.guest.is_told && self.host.is_watched.load(Relaxed) {
            return Err(Errno::NOSYS);
        }
        self.reply.put(&OpenOut::default());
        Ok(())
    }

    pub(super) fn read_directory(&mut self, ask: &ReadIn, plus: bool) -> Result<(), Errno> {
        let node = self.header.node;
        let found = self.host.find(node)?;
        let directory = self.host.export.open(&found, OFlags::RDONLY | OFlags::DIRECTORY)?;
        if ask.offset != 0 {
            seek(&directory, SeekFrom::Start(ask.offset))?;
        }
        let room = (ask.size as usize).min(MOST_DATA);
        let withheld = self.host.options.withhold_types;
        let mut buffer = [MaybeUninit::uninit(); 32 << 10];
        let mut entries = RawDir::new(&directory, &mut buffer);
        let mut position = ask.offset;
        let mut is_end = true;
        while let Some(found) = entries.next() {
            let found = found?;
            let name = found.file_name();
            let head = if plus { size_of::<EntryOut>() } else { 0 } + size_of::<Dirent>();
            if self.reply.len() + padded(head + name.count_bytes()) > room {
                is_end = false;
                break;
            }
            position = found.next_entry_cookie();
            let mut dirent = Dirent {
                ino: found.ino(),
                off: position,
                namelen: name.count_bytes() as u32,
                kind: if withheld { 0 } else { number(found.file_type()) },
            };
            if plus {
                let Some(entry) = self.ahead(&directory, node, name, &mut dirent) else { continue };
                self.reply.put(&entry);
            }
            self.reply.put_bytes(dirent.as_bytes());
            self.reply.put_bytes(name.to_bytes());
            self.reply.pad();
        }
        if is_end {
            self.reply.ends(node, position);
        }
        Ok(())
    }

    /// What a guest is told of an entry ahead of asking; `None` if it is no longer there.
    fn ahead(&self, directory: &OwnedFd, node: u64, name: &CStr, dirent: &mut Dirent) -> Option<EntryOut> {
        // Node 0: only the name counts.
        if matches!(name.to_bytes(), b"." | b"..") {
            return Some(EntryOut::default());
        }
        match self.entry_of(node, name, || stat_at(directory, name)) {
            Ok(entry) => {
                (dirent.ino, dirent.kind) = (entry.attr.ino, entry.attr.mode >> 12);
                Some(entry)
            }
            Err(Errno::NOENT) => None,
            Err(_) => Some(EntryOut::default()),
        }
    }
}

/// A type as directories have it: the upper bits of the mode. 0 means that it is not known.
fn number(kind: FileType) -> u32 {
    if kind == FileType::Unknown { 0 } else { kind.as_raw_mode() >> 12 }
}
