//! What was done with a file by all commands, or with several files.

use inodyne_model::Nanos;
use inodyne_model::files::FileUse;

/// A file was read again if this many times its size was read: between one and two, a part may have been.
const READ_AGAIN: u64 = 2;

/// What was done with something, by all commands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    /// Directories are not counted.
    pub(crate) files: u64,
    pub(crate) calls: u64,
    pub(crate) opens: u64,
    pub(crate) syncs: u64,
    /// In bytes, like `written`.
    pub(crate) read: u64,
    pub(crate) written: u64,
    pub(crate) wall_ns: Nanos,
    /// Of the file, in bytes.
    pub(crate) size: u64,
}

impl Sum {
    pub(super) fn of(file: &FileUse) -> Sum {
        let FileUse { opens, reads, writes, lists, syncs, maps, others, .. } = *file;
        Sum {
            files: u64::from(!file.is_directory),
            calls: [opens, reads, writes, lists, syncs, maps, others].into_iter().fold(0, u64::saturating_add),
            opens,
            syncs,
            read: file.read_bytes,
            written: file.written_bytes,
            wall_ns: file.wall_ns,
            size: if file.is_directory { 0 } else { file.size },
        }
    }

    /// Adds what is below, or elsewhere.
    pub(super) fn add(&mut self, other: &Sum) {
        let Sum { files, calls, opens, syncs, read, written, wall_ns, size } = *other;
        self.files = self.files.saturating_add(files);
        self.calls = self.calls.saturating_add(calls);
        self.opens = self.opens.saturating_add(opens);
        self.syncs = self.syncs.saturating_add(syncs);
        self.read = self.read.saturating_add(read);
        self.written = self.written.saturating_add(written);
        self.wall_ns += wall_ns;
        self.size = self.size.saturating_add(size);
    }

    /// How much of what was read had been read before; 0 if that is not certain, or if the size is not known (as in /proc).
    pub(super) fn read_again(&self) -> u64 {
        let is_again = self.size > 0 && self.read / self.size >= READ_AGAIN;
        if is_again { self.read - self.size } else { 0 }
    }
}
