//! Open files: their data.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{FallocateFlags, OFlags, SeekFrom, copy_file_range, fallocate, fdatasync, fsync, ftruncate, seek},
    io::{Errno, ReadWriteFlags, pread, pwritev2, retry_on_intr},
};

use super::Call;
use crate::{
    fuse::abi::{
        CopyFileRangeIn, FSYNC_FDATASYNC, FallocateIn, FlushIn, FsyncIn, LseekIn, LseekOut, OPEN_KILL_SUIDGID, OpenIn,
        OpenOut, ReadIn, ReleaseIn, WRITE_KILL_SUIDGID, WriteIn, WriteOut,
    },
    protocol::{frame::MOST_DATA, invalidation::Invalidation},
    server::{export::stat, nodes::NodeId},
};

impl Call<'_> {
    pub(super) fn open(&mut self, ask: &OpenIn) -> Result<(), Errno> {
        self.open_node(self.header.node, ask)
    }

    /// Opens the file of a node and answers with its handle. Whether data is appended, and how far it must have got when a write
    /// is answered, comes with each write.
    pub(super) fn open_node(&mut self, node: NodeId, ask: &OpenIn) -> Result<(), Errno> {
        let found = self.host.find_inside(node)?;
        let asked = OFlags::from_bits_retain(ask.flags);
        let file = self.host.export.open(&found, asked & OFlags::ACCMODE)?;
        if asked.contains(OFlags::TRUNC) {
            // Here and below others are told also where only a part of it can be done.
            self.changes.push(Invalidation::data(node));
            if ask.open_flags & OPEN_KILL_SUIDGID != 0 {
                self.strip_set_ids(&file)?;
            }
            // Whoever opens a file only for reading may empty it all the same; its descriptor may not.
            let writable = match asked & OFlags::ACCMODE {
                OFlags::RDONLY => Some(self.host.export.open(&found, OFlags::WRONLY)?),
                _ => None,
            };
            ftruncate(writable.as_ref().unwrap_or(&file), 0)?;
        }
        let fh = self.host.handles.add(self.guest.id, node, file)?;
        self.reply.put(&OpenOut { fh, open_flags: self.keep_cache(node), padding: 0 });
        Ok(())
    }

    pub(super) fn read(&mut self, ask: &ReadIn) -> Result<(), Errno> {
        check_offset(ask.offset)?;
        let file = self.host.handles.get(self.guest.id, ask.fh)?;
        self.reply.fill((ask.size as usize).min(MOST_DATA), |buffer| {
            let mut filled = 0;
            // Less than asked would mean the end of the file.
            while filled < buffer.len() {
                match retry_on_intr(|| pread(&*file.file, &mut buffer[filled..], ask.offset + filled as u64)) {
                    Ok(0) => break,
                    Ok(length) => filled += length,
                    Err(_) if filled > 0 => break,
                    Err(errno) => return Err(errno),
                }
            }
            Ok(filled)
        })
    }

    pub(super) fn write(&mut self, ask: &WriteIn, data: &[u8]) -> Result<(), Errno> {
        check_offset(ask.offset)?;
        let file = self.host.handles.get(self.guest.id, ask.fh)?;
        self.changes.push(Invalidation::data(file.node));
        if ask.write_flags & WRITE_KILL_SUIDGID != 0 {
            self.strip_set_ids(&file.file)?;
        }
        let asked = OFlags::from_bits_retain(ask.flags);
        let mut flags = ReadWriteFlags::empty();
        flags.set(ReadWriteFlags::APPEND, asked.contains(OFlags::APPEND));
        flags.set(ReadWriteFlags::SYNC, asked.contains(OFlags::SYNC));
        flags.set(ReadWriteFlags::DSYNC, asked.contains(OFlags::DSYNC));
        let mut written = 0;
        while written < data.len() {
            let rest = [std::io::IoSlice::new(&data[written..])];
            match retry_on_intr(|| pwritev2(&*file.file, &rest, ask.offset + written as u64, flags)) {
                Ok(0) => break,
                Ok(length) => written += length,
                Err(_) if written > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        if asked.contains(OFlags::APPEND) && stat(&file.file)?.stx_size != ask.offset + written as u64 {
            // Somebody else had appended: the guest's kernel has put this data in the wrong place.
            self.host.coherence.tell(&self.guest.link, &[Invalidation::data(file.node)]);
        }
        self.reply.put(&WriteOut { size: written as u32, padding: 0 });
        Ok(())
    }

    /// One of the guest's descriptors is closed: its process's locks go.
    pub(super) fn flush(&mut self, ask: &FlushIn) -> Result<(), Errno> {
        let file = self.host.handles.get(self.guest.id, ask.fh)?;
        self.host.handles.unlock(&(self.guest.id, file.node, ask.lock_owner));
        Ok(())
    }

    /// The last one is closed. The mounter has answered that already.
    pub(super) fn release(&mut self, ask: &ReleaseIn) {
        self.host.handles.remove(self.guest.id, ask.fh);
    }

    pub(super) fn sync(&mut self, ask: &FsyncIn, is_directory: bool) -> Result<(), Errno> {
        if is_directory {
            return fsync(&*self.open_again(self.header.node)?);
        }
        let file = self.host.handles.get(self.guest.id, ask.fh)?;
        if ask.flags & FSYNC_FDATASYNC != 0 { fdatasync(&*file.file) } else { fsync(&*file.file) }
    }

    /// A node's file, opened for reading.
    pub(super) fn open_again(&self, node: NodeId) -> Result<Box<OwnedFd>, Errno> {
        self.host.export.open(&*self.host.find(node)?, OFlags::RDONLY).map(Box::new)
    }

    pub(super) fn allocate(&mut self, ask: &FallocateIn) -> Result<(), Errno> {
        let file = self.host.handles.get(self.guest.id, ask.fh)?;
        let mode = FallocateFlags::from_bits_retain(ask.mode);
        let done = retry_on_intr(|| fallocate(&*file.file, mode, ask.offset, ask.length));
        // Programs try out what a file system can do. It then has done nothing.
        if done.is_err_and(|errno| matches!(errno, Errno::OPNOTSUPP | Errno::INVAL | Errno::BADF)) {
            return done;
        }
        self.changes.push(Invalidation::data(file.node));
        self.strip_set_ids_unasked(&file.file)?;
        done
    }

    pub(super) fn seek(&mut self, ask: &LseekIn) -> Result<(), Errno> {
        let file = self.host.handles.get(self.guest.id, ask.fh)?;
        let to = match ask.whence as i32 {
            libc::SEEK_DATA => SeekFrom::Data(ask.offset),
            libc::SEEK_HOLE => SeekFrom::Hole(ask.offset),
            // The kernel handles all others itself.
            _ => return Err(Errno::INVAL),
        };
        let offset = seek(&*file.file, to)?;
        self.reply.put(&LseekOut { offset });
        Ok(())
    }

    pub(super) fn copy(&mut self, ask: &CopyFileRangeIn) -> Result<(), Errno> {
        let from = self.host.handles.get(self.guest.id, ask.fh_in)?;
        let to = self.host.handles.get(self.guest.id, ask.fh_out)?;
        let (mut off_in, mut off_out) = (ask.off_in, ask.off_out);
        // The answer has 32 bits, and nobody should wait for more than that at once.
        let length = ask.len.min(1 << 30) as usize;
        self.changes.push(Invalidation::data(to.node));
        self.strip_set_ids_unasked(&to.file)?;
        let copied = copy_file_range(&*from.file, Some(&mut off_in), &*to.file, Some(&mut off_out), length)?;
        self.reply.put(&WriteOut { size: copied as u32, padding: 0 });
        Ok(())
    }
}

/// Nothing is beyond this in any file. The kernel would take some of these for negative numbers, and -1 for wherever the descriptor is.
fn check_offset(offset: u64) -> Result<(), Errno> {
    i64::try_from(offset).map(drop).map_err(|_| Errno::INVAL)
}
