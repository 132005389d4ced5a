//! Answers to the kernel, written after the header of the frame that carries them, so that each is sent in one piece without
//! being copied.

use rustix::io::Errno;
use zerocopy::{Immutable, IntoBytes};

use super::abi::{AttrOut, OutHeader, padded};
use crate::protocol::frame::{self, Kind};

/// Where the payload of a reply begins in its bytes.
const BODY: usize = frame::HEADER + size_of::<OutHeader>();

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
    /// What is added after the message, for a mounter of ours.
    beside: Option<Beside>,
}

/// Something besides.
#[derive(Debug)]
enum Beside {
    /// The answer holds the last entry of a directory, and this is the position after it.
    End { directory: u64, position: u64 },
    /// The attributes that a directory has now, after something was changed in it.
    Changed { directory: u64, attributes: AttrOut },
}

impl Reply {
    /// An empty reply, in memory that may have served for another.
    pub fn reusing(mut memory: Vec<u8>) -> Self {
        memory.clear();
        memory.resize(BODY, 0);
        Self { bytes: memory, beside: None }
    }

    /// Adds a structure.
    pub fn put<T: IntoBytes + Immutable>(&mut self, value: &T) {
        self.bytes.extend_from_slice(value.as_bytes());
    }

    /// Adds bytes.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds zeros up to where the next entry of a directory may begin.
    pub fn pad(&mut self) {
        self.bytes.resize(BODY + padded(self.len()), 0);
    }

    /// Adds up to `size` bytes that `fill` writes; it returns how many.
    pub fn fill(&mut self, size: usize, fill: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Result<(), Errno> {
        let start = self.bytes.len();
        self.bytes.resize(start + size, 0);
        let filled = fill(&mut self.bytes[start..]);
        self.bytes.truncate(start + filled.unwrap_or(0).min(size));
        filled.map(drop)
    }

    /// Bytes of the payload so far.
    pub fn len(&self) -> usize {
        self.bytes.len() - BODY
    }

    /// Notes that nothing in the directory comes after what this answer lists.
    pub fn ends(&mut self, directory: u64, position: u64) {
        self.beside = Some(Beside::End { directory, position });
    }

    /// Notes the attributes of a directory after the requested change was made in it.
    pub fn changed(&mut self, directory: u64, attributes: AttrOut) {
        self.beside = Some(Beside::Changed { directory, attributes });
    }

    /// The frame, complete.
    pub fn finish(mut self, unique: u64, done: Result<(), Errno>) -> Vec<u8> {
        if done.is_err() {
            self.bytes.truncate(BODY);
            self.beside = None;
        }
        let error = done.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
        let out = OutHeader { len: (self.bytes.len() - frame::HEADER) as u32, error, unique };
        self.bytes[frame::HEADER..BODY].copy_from_slice(out.as_bytes());
        let kind = match self.beside {
            None => Kind::Reply,
            Some(Beside::End { directory, position }) => {
                self.bytes.extend_from_slice(&directory.to_le_bytes());
                self.bytes.extend_from_slice(&position.to_le_bytes());
                Kind::LastReply
            }
            Some(Beside::Changed { directory, attributes }) => {
                self.bytes.extend_from_slice(&directory.to_le_bytes());
                self.bytes.extend_from_slice(attributes.as_bytes());
                Kind::ChangedReply
            }
        };
        frame::seal(&mut self.bytes, kind);
        self.bytes
    }
}
