//! The content of one of the kernel's files: mapped, which Linux allows from 6.16 on; else read, which takes a system call per 4 KiB.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::Path;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The content of a file that does not change.
pub enum Content {
    /// Where it is mapped, and how many bytes.
    Mapped(*const u8, usize),
    /// A copy.
    Read(Vec<u8>),
}

// SAFETY: nobody writes to the mapping, and only `drop` ends it.
unsafe impl Send for Content {}
// SAFETY: the same.
unsafe impl Sync for Content {}

impl Content {
    /// All of the file at this path.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(path: &Path) -> io::Result<Content> {
        let file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: a new mapping, wherever there is room. The kernel maps memory of its own that nobody writes to.
        let mapped = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
        mapped.map_or_else(|_| fs::read(path).map(Content::Read), |base| Ok(Content::Mapped(base.cast(), length)))
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // SAFETY: exactly the mapping, which lasts as long as self.
            Content::Mapped(base, length) => unsafe { std::slice::from_raw_parts(*base, *length) },
            Content::Read(bytes) => bytes,
        }
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        if let Content::Mapped(base, length) = self {
            // SAFETY: exactly the mapping made in `of`; no reference into it outlives self. A failure changes nothing.
            let _ = unsafe { munmap(base.cast_mut().cast(), *length) };
        }
    }
}
