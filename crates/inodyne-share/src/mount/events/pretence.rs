//! How requests from the thread that wakes programs are answered: none of them changes anything on the host, and nobody else sees
//! what is pretended.
//!
//! What it makes is really looked up, and what it sets is read: the kernel gets an answer that describes the file as it is. Neither
//! answer is valid for any time, since the kernel takes it as the newest, and it may not be.
//!
//! What it removes or renames is a file that is pretended for it alone: others look the name up again, as that is not to be believed either.

use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use rustix::{
    fs::{FileType, OFlags},
    io::Errno,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    fuse::abi::{
        Attr, AttrOut, EntryOut, FOPEN_KEEP_CACHE, FOPEN_NOFLUSH, GetAttrIn, InHeader, MkDirIn, MkNodIn, OpenIn,
        OpenOut, OutHeader, opcode,
    },
    protocol::frame,
};

/// The node numbers of what is pretended. Those of the host are digests.
const FILE: u64 = u64::MAX - 1;
const DIRECTORY: u64 = u64::MAX - 2;

/// The handle of what it opens.
const HANDLE: u64 = u64::MAX;

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::mount) enum Instead {
    /// This frame is sent, once it has its header.
    Ask(Vec<u8>),
    /// It is answered here.
    Answer(Result<Vec<u8>, Errno>),
}

/// What an answer of the host is for.
#[derive(Clone, Copy, Debug)]
enum For {
    /// A file of this type was to be made.
    Made(FileType),
    /// Attributes were to be set.
    Set,
}

/// All of it.
#[derive(Debug, Default)]
pub(in crate::mount) struct Pretence {
    /// The thread's number.
    pub thread: AtomicU32,
    plan: Mutex<Names>,
    asked: Mutex<HashMap<u64, For>>,
}

/// Names that are answered here.
#[derive(Debug, Default)]
struct Names {
    /// There is such a file.
    shown: Option<(u64, CString, FileType)>,
    /// There is none.
    absent: Option<(u64, CString)>,
}

/// Has these names answered here, until dropped.
pub(super) struct Plan<'a>(&'a Pretence);

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        *self.0.names() = Names::default();
    }
}

impl Pretence {
    fn names(&self) -> MutexGuard<'_, Names> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<u64, For>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the thread, a name is that of a file of this mode, and another one is free.
    pub(super) fn plan(&self, shown: Option<(u64, &CStr, u32)>, absent: Option<(u64, &CStr)>) -> Plan<'_> {
        *self.names() = Names {
            shown: shown.map(|(directory, name, mode)| (directory, name.into(), FileType::from_raw_mode(mode))),
            absent: absent.map(|(directory, name)| (directory, name.into())),
        };
        Plan(self)
    }

    /// What becomes of a request, if it is the thread's and is not simply sent.
    pub fn asks(&self, header: &InHeader, body: &[u8]) -> Option<Instead> {
        // The last close belongs to no thread.
        if header.opcode == opcode::RELEASE && handle(body) == Some(HANDLE) {
            return Some(Instead::Answer(Ok(Vec::new())));
        }
        if header.pid == 0 || header.pid != self.thread.load(Relaxed) {
            return None;
        }
        match header.opcode {
            opcode::LOOKUP => self.looked_up(header.node, name(body)?),
            opcode::MKNOD => {
                let (ask, rest) = MkNodIn::read_from_prefix(body).ok()?;
                Some(self.is_made(header, FileType::from_raw_mode(ask.mode), name(rest)?))
            }
            opcode::MKDIR => Some(self.is_made(header, FileType::Directory, name(body.get(size_of::<MkDirIn>()..)?)?)),
            opcode::SYMLINK => Some(self.is_made(header, FileType::Symlink, name(body)?)),
            opcode::SETATTR => {
                self.asked().insert(header.unique, For::Set);
                Some(Instead::Ask(instead(header, opcode::GETATTR, GetAttrIn::default().as_bytes())))
            }
            opcode::UNLINK | opcode::RMDIR | opcode::RENAME | opcode::RENAME2 => Some(Instead::Answer(Ok(Vec::new()))),
            opcode::OPEN => {
                let (ask, _) = OpenIn::read_from_prefix(body).ok()?;
                let is_writing = OFlags::from_bits_retain(ask.flags) & OFlags::ACCMODE != OFlags::RDONLY;
                let out = OpenOut { fh: HANDLE, open_flags: FOPEN_KEEP_CACHE | FOPEN_NOFLUSH, padding: 0 };
                is_writing.then(|| Instead::Answer(Ok(out.as_bytes().into())))
            }
            opcode::FLUSH if handle(body) == Some(HANDLE) => Some(Instead::Answer(Ok(Vec::new()))),
            _ => None,
        }
    }

    fn looked_up(&self, directory: u64, name: &CStr) -> Option<Instead> {
        let names = self.names();
        let is_it = |place: (u64, &CStr)| place == (directory, name);
        if names.absent.as_ref().is_some_and(|(directory, name)| is_it((*directory, name))) {
            return Some(Instead::Answer(Err(Errno::NOENT)));
        }
        let (_, _, kind) = names.shown.as_ref().filter(|(directory, name, _)| is_it((*directory, name)))?;
        let (node, nlink) = if *kind == FileType::Directory { (DIRECTORY, 2) } else { (FILE, 1) };
        let attr = Attr { ino: node, mode: kind.as_raw_mode() | 0o600, nlink, ..Attr::default() };
        let entry = EntryOut { node, attr, ..EntryOut::default() };
        Some(Instead::Answer(Ok(entry.as_bytes().into())))
    }

    fn is_made(&self, header: &InHeader, kind: FileType, name: &CStr) -> Instead {
        self.asked().insert(header.unique, For::Made(kind));
        Instead::Ask(instead(header, opcode::LOOKUP, name.to_bytes_with_nul()))
    }

    /// What the kernel gets of the host's answer, if the request was the thread's; and a node that the kernel must not learn of, since
    /// it would not accept it.
    pub fn answer(&self, header: &OutHeader, message: &[u8]) -> Option<(Vec<u8>, Option<u64>)> {
        let kind = self.asked().remove(&header.unique)?;
        if header.error != 0 {
            return Some((message.into(), None));
        }
        let body = message.get(size_of::<OutHeader>()..)?;
        match kind {
            For::Set => {
                let (out, _) = AttrOut::read_from_prefix(body).ok()?;
                let out = AttrOut { attr_valid: 0, attr_valid_nsec: 0, ..out };
                Some((whole(header.unique, Ok(out.as_bytes())), None))
            }
            For::Made(kind) => {
                let (entry, _) = EntryOut::read_from_prefix(body).ok()?;
                if entry.node == 0 {
                    return Some((whole(header.unique, Err(Errno::NOENT)), None));
                }
                if FileType::from_raw_mode(entry.attr.mode) != kind {
                    return Some((whole(header.unique, Err(Errno::STALE)), Some(entry.node)));
                }
                let (entry_valid, attr_valid, entry_valid_nsec, attr_valid_nsec) = (0, 0, 0, 0);
                let entry = EntryOut { entry_valid, attr_valid, entry_valid_nsec, attr_valid_nsec, ..entry };
                Some((whole(header.unique, Ok(entry.as_bytes())), None))
            }
        }
    }
}

/// The name at the beginning of a request's body.
fn name(body: &[u8]) -> Option<&CStr> {
    CStr::from_bytes_until_nul(body).ok()
}

/// The handle there.
fn handle(body: &[u8]) -> Option<u64> {
    body.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// Another request of the same thread under the same number, as a frame without its header.
fn instead(header: &InHeader, opcode: u32, body: &[u8]) -> Vec<u8> {
    let header = InHeader { len: (size_of::<InHeader>() + body.len()) as u32, opcode, extensions: 0, ..*header };
    [&[0; frame::HEADER][..], header.as_bytes(), body].concat()
}

fn whole(unique: u64, done: Result<&[u8], Errno>) -> Vec<u8> {
    let (error, body) = done.map_or_else(|errno| (-errno.raw_os_error(), &[][..]), |body| (0, body));
    let header = OutHeader { len: (size_of::<OutHeader>() + body.len()) as u32, error, unique };
    [header.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: u32 = 9;

    fn pretence() -> Pretence {
        let pretence = Pretence::default();
        pretence.thread.store(THREAD, Relaxed);
        pretence
    }

    fn ask(pretence: &Pretence, pid: u32, opcode: u32, node: u64, body: &[u8]) -> Option<Instead> {
        pretence.asks(&InHeader { pid, opcode, node, unique: 4, ..InHeader::default() }, body)
    }

    fn answer(pretence: &Pretence, body: &[u8]) -> (OutHeader, Vec<u8>, Option<u64>) {
        let header = OutHeader { len: (16 + body.len()) as u32, error: 0, unique: 4 };
        let (message, forgotten) = pretence.answer(&header, &[header.as_bytes(), body].concat()).unwrap();
        let (header, body) = OutHeader::read_from_prefix(&message).unwrap();
        (header, body.into(), forgotten)
    }

    #[test]
    fn others_are_not_deceived() {
        let pretence = pretence();
        let _plan = pretence.plan(Some((7, c"gone", libc::S_IFREG)), Some((7, c"new")));
        for opcode in [opcode::LOOKUP, opcode::UNLINK, opcode::MKNOD, opcode::SETATTR, opcode::OPEN] {
            assert_eq!(ask(&pretence, 8, opcode, 7, b"gone\0............................"), None);
        }
        assert_eq!(ask(&pretence, THREAD, opcode::LOOKUP, 8, b"gone\0"), None);
    }

    #[test]
    fn what_is_made_is_looked_up() {
        let pretence = pretence();
        let body = [MkNodIn { mode: libc::S_IFREG | 0o600, ..MkNodIn::default() }.as_bytes(), b"new\0"].concat();
        let Some(Instead::Ask(frame)) = ask(&pretence, THREAD, opcode::MKNOD, 7, &body) else { panic!("not asked") };
        let (header, body) = InHeader::read_from_prefix(&frame[frame::HEADER..]).unwrap();
        assert_eq!((header.opcode, header.node, header.len, body), (opcode::LOOKUP, 7, 44, &b"new\0"[..]));
        let attr = Attr { mode: libc::S_IFREG | 0o644, size: 3, ..Attr::default() };
        let found = EntryOut { node: 70, entry_valid: 9, attr_valid: 9, attr, ..EntryOut::default() };
        let (header, body, forgotten) = answer(&pretence, found.as_bytes());
        let (entry, _) = EntryOut::read_from_prefix(&body).unwrap();
        assert_eq!((header.error, entry.node, entry.entry_valid, entry.attr_valid, forgotten), (0, 70, 0, 0, None));
        assert!(pretence.answer(&header, &body).is_none(), "once");
    }

    #[test]
    fn the_kernel_is_told_of_no_file_that_it_would_not_take() {
        let pretence = pretence();
        let _ = ask(&pretence, THREAD, opcode::MKDIR, 7, &[MkDirIn::default().as_bytes(), b"new\0"].concat());
        let attr = Attr { mode: libc::S_IFREG | 0o644, ..Attr::default() };
        let (header, _, forgotten) = answer(&pretence, EntryOut { node: 70, attr, ..EntryOut::default() }.as_bytes());
        assert!(header.error != 0 && forgotten == Some(70));
        let _ = ask(&pretence, THREAD, opcode::SYMLINK, 7, b"new\0nothing\0");
        let (header, _, forgotten) = answer(&pretence, EntryOut::default().as_bytes());
        assert_eq!((header.error, forgotten), (-libc::ENOENT, None));
    }

    #[test]
    fn what_is_removed_was_never_there_and_what_is_set_is_read() {
        let pretence = pretence();
        let plan = pretence.plan(Some((7, c"gone", libc::S_IFDIR)), Some((7, c"new")));
        let Some(Instead::Answer(Ok(entry))) = ask(&pretence, THREAD, opcode::LOOKUP, 7, b"gone\0") else {
            panic!("not shown")
        };
        assert_eq!(EntryOut::read_from_prefix(&entry).unwrap().0.node, DIRECTORY);
        assert_eq!(ask(&pretence, THREAD, opcode::LOOKUP, 7, b"new\0"), Some(Instead::Answer(Err(Errno::NOENT))));
        assert_eq!(ask(&pretence, THREAD, opcode::RMDIR, 7, b"gone\0"), Some(Instead::Answer(Ok(Vec::new()))));
        drop(plan);
        assert_eq!(ask(&pretence, THREAD, opcode::LOOKUP, 7, b"gone\0"), None);
        assert!(matches!(ask(&pretence, THREAD, opcode::SETATTR, 7, &[0; 88]), Some(Instead::Ask(_))));
        let (_, body, _) = answer(&pretence, AttrOut { attr_valid: 9, ..AttrOut::default() }.as_bytes());
        assert_eq!(AttrOut::read_from_prefix(&body).unwrap().0.attr_valid, 0);
    }

    #[test]
    fn what_it_opens_and_closes_the_host_does_not_hear_of() {
        let pretence = pretence();
        let open = |flags: i32| OpenIn { flags: flags as u32, open_flags: 0 };
        assert_eq!(ask(&pretence, THREAD, opcode::OPEN, 7, open(libc::O_RDONLY).as_bytes()), None);
        let Some(Instead::Answer(Ok(out))) = ask(&pretence, THREAD, opcode::OPEN, 7, open(libc::O_WRONLY).as_bytes())
        else {
            panic!("not opened")
        };
        let handle = OpenOut::read_from_prefix(&out).unwrap().0.fh;
        let closed = [&handle.to_ne_bytes()[..], &[0; 16]].concat();
        assert_eq!(ask(&pretence, 0, opcode::RELEASE, 7, &closed), Some(Instead::Answer(Ok(Vec::new()))));
        assert_eq!(ask(&pretence, 0, opcode::RELEASE, 7, &[0; 24]), None);
    }
}
