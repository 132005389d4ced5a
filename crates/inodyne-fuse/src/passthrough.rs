//! A directory, shown as it is by a server: what FUSE itself costs.
//!
//! Plain on purpose, as libfuse's own example `passthrough_ll` is: attributes and names are believed for a second, data goes
//! through the server, an open drops cached data (unless [`Caching`] says otherwise), directories are read with types but without
//! attributes (no readdirplus). The kernel checks permissions (`default_permissions`); the server acts as root, and gives what it has
//! made to whoever asked for it.
//!
//! Every step is taken from a descriptor (`nodes`) by one name without a slash, and no symbolic link is followed.
//! Where the root is a mount of its own that shows nothing of what is mounted below (`open_tree` with `OPEN_TREE_CLONE`), nothing
//! leads out.

use std::{
    collections::HashMap,
    ffi::OsStr,
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fuser::{
    CopyFileRangeFlags, Errno, FileAttr, FileHandle, FileType as Kind, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::{
    fs::{
        AtFlags, CWD, FallocateFlags, FileType, Gid, Mode, OFlags, RawDir, SeekFrom, Stat, Timespec, Timestamps,
        UTIME_NOW, UTIME_OMIT, Uid, XattrFlags, chmodat, chownat, copy_file_range, fallocate, fchmod, fdatasync, fstat,
        fstatvfs, fsync, ftruncate, getxattr, linkat, listxattr, mkdirat, mknodat, openat, readlinkat, removexattr,
        renameat_with, seek, setxattr, symlinkat, unlinkat, utimensat,
    },
    io::{Errno as Answer, ReadWriteFlags, fcntl_dupfd_cloexec, pread, pwritev2, retry_on_intr},
    process::{Resource, Rlimit, geteuid, setrlimit},
};

use crate::{Caching, OnCommand, Server, nodes::Nodes};

/// One is needed for each file that the kernel knows, so as many are allowed as the machine allows any process.
fn allow_many_descriptors() {
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse().ok());
    if most.is_some() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
    }
}

/// A file system that shows a directory.
pub struct Passthrough {
    nodes: Nodes,
    caching: Caching,
    open: Mutex<HashMap<u64, Arc<Opened>>>,
    next: AtomicU64,
}

/// A file or directory that is open.
struct Opened {
    file: OwnedFd,
    /// Held while a directory is read: all who read it share the position.
    position: Mutex<()>,
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

type Done<T> = Result<T, Answer>;

impl Passthrough {
    /// Starts a server that shows the directory `root` on `connection`, in the mount namespace `outside`.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub fn serve(root: &OwnedFd, caching: Caching, connection: OwnedFd, outside: BorrowedFd<'_>) -> io::Result<Server> {
        Server::start(c"inodyne-fuse", connection, outside, &[root.as_fd()], || {
            allow_many_descriptors();
            let root = fcntl_dupfd_cloexec(root, 0)?;
            let takes_no_commands: OnCommand = Arc::new(|_| ());
            Ok((Passthrough::new(root, caching)?, takes_no_commands))
        })
    }

    /// For a directory that is open.
    ///
    /// # Errors
    /// It cannot be inspected.
    pub fn new(root: OwnedFd, caching: Caching) -> Result<Self, Answer> {
        Ok(Self { nodes: Nodes::new(root)?, caching, open: Mutex::default(), next: AtomicU64::new(1) })
    }

    /// Answers with a file.
    fn entry(&self, reply: ReplyEntry, done: Done<FileAttr>) {
        let Caching { entry, attributes, .. } = self.caching;
        match done {
            Ok(file) => reply.entry_with_ttls(&attributes, &entry, &file, Generation(0)),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    /// How files are open.
    fn kept(&self) -> FopenFlags {
        if self.caching.contents { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() }
    }

    fn node(&self, ino: INodeNo) -> Done<Arc<OwnedFd>> {
        self.nodes.file(ino.0)
    }

    /// Tells the kernel of a name.
    fn look_up(&self, parent: BorrowedFd<'_>, name: &OsStr) -> Done<FileAttr> {
        self.tell(openat(parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Tells the kernel of a file that was found (`O_PATH`).
    fn tell(&self, file: OwnedFd) -> Done<FileAttr> {
        let stat = fstat(&file)?;
        let number = self.nodes.tell(file, &stat);
        Ok(attributes(number, &stat))
    }

    /// Makes a regular file for whoever asked for it, and opens it.
    fn make_file(parent: &OwnedFd, name: &OsStr, access: OFlags, mode: Mode, asks: Asks) -> Done<OwnedFd> {
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(parent, name, flags, mode)?;
        give_file(parent, &file, mode, asks)?;
        Ok(file)
    }

    fn keep_open(&self, file: OwnedFd) -> FileHandle {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let opened = Opened { file, position: Mutex::new(()) };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(opened));
        FileHandle(number)
    }

    fn opened(&self, handle: FileHandle) -> Done<Arc<Opened>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&handle.0).cloned().ok_or(Answer::BADF)
    }

    fn close(&self, handle: FileHandle) {
        let closed = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle.0);
        drop(closed);
    }

    fn change(&self, ino: INodeNo, handle: Option<FileHandle>, change: &Change) -> Done<FileAttr> {
        let node = self.node(ino)?;
        if let Some(mode) = change.mode {
            chmodat(CWD, path_of(&node), Mode::from_raw_mode(mode & 0o7777), AtFlags::empty())?;
        }
        if change.uid.is_some() || change.gid.is_some() {
            let (uid, gid) = (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw));
            chownat(&node, "", uid, gid, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if let Some(size) = change.size {
            match handle {
                Some(handle) => retry_on_intr(|| ftruncate(&*self.opened(handle)?, size))?,
                None => {
                    let file = reopen(&node, OFlags::WRONLY | OFlags::NONBLOCK)?;
                    retry_on_intr(|| ftruncate(&file, size))?;
                }
            }
        }
        if change.atime.is_some() || change.mtime.is_some() {
            let [last_access, last_modification] = [&change.atime, &change.mtime].map(time_to_set);
            utimensat(&node, "", &Timestamps { last_access, last_modification }, AtFlags::EMPTY_PATH)?;
        }
        Ok(attributes(ino.0, &fstat(&node)?))
    }

    fn make_and_open(
        &self,
        asks: Asks,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Done<(FileAttr, FileHandle)> {
        let parent = self.node(parent)?;
        let flags = of_file(flags);
        match Self::make_file(&parent, name, flags, Mode::from_raw_mode(mode), asks) {
            // By its descriptor: the name may be another file's by now.
            Ok(file) => Ok((self.tell(reopen(&file, OFlags::PATH)?)?, self.keep_open(file))),
            // Somebody else has made it since the kernel looked. Told so, the kernel looks again and checks who may open the file; it checks
            // nothing about a file that is opened in answer to this request.
            Err(Answer::EXIST) if !flags.contains(OFlags::EXCL) => Err(Answer::STALE),
            Err(answer) => Err(answer),
        }
    }

    fn read_directory(&self, handle: FileHandle, offset: u64, reply: &mut ReplyDirectory) -> Done<()> {
        let directory = self.opened(handle)?;
        let _alone = directory.position.lock().unwrap_or_else(PoisonError::into_inner);
        seek(&directory, SeekFrom::Start(offset))?;
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut entries = RawDir::new(&directory, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                    stat.map_or(FileType::RegularFile, |stat| FileType::from_raw_mode(stat.st_mode))
                }
                known => known,
            };
            if reply.add(INodeNo(entry.ino()), entry.next_entry_cookie(), kind_of(kind), name) {
                break;
            }
        }
        Ok(())
    }
}

/// Who asks for something: user and group.
type Asks = (u32, u32);

fn who(request: &Request) -> Asks {
    (request.uid(), request.gid())
}

/// Gives a new regular file to whoever asked for it, through its open descriptor: its name may refer to another file by now.
fn give_file(parent: &OwnedFd, file: &OwnedFd, asked: Mode, asks: Asks) -> Done<()> {
    let mode = Mode::from_raw_mode(fstat(file)?.st_mode) & asked;
    give(parent, file, asks)?;
    if asks != (0, 0) && mode.intersects(Mode::SUID | Mode::SGID) {
        // They were cleared when the owner changed.
        fchmod(file, mode)?;
    }
    Ok(())
}

/// Gives anything else that was made to whoever asked for it, and returns it (`O_PATH`). The call that makes it returns no descriptor, so the name is
/// looked up again. What was made has this type, belongs to this process, and has no second name; anything else that has the name by now is
/// somebody else's, and stays so.
fn give_by_name(parent: &OwnedFd, name: &OsStr, kind: FileType, asks: Asks) -> Done<OwnedFd> {
    let found = openat(parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&found)?;
    let is_it = FileType::from_raw_mode(stat.st_mode) == kind
        && Uid::from_raw(stat.st_uid) == geteuid()
        && (kind == FileType::Directory || stat.st_nlink == 1);
    if is_it {
        give(parent, &found, asks)?;
    }
    Ok(found)
}

fn give(parent: &OwnedFd, file: &OwnedFd, (uid, gid): Asks) -> Done<()> {
    if (uid, gid) == (0, 0) {
        return Ok(());
    }
    // In a directory with this bit everything belongs to the directory's group.
    let keeps_group = Mode::from_raw_mode(fstat(parent)?.st_mode).contains(Mode::SGID);
    let gid = (!keeps_group).then(|| Gid::from_raw(gid));
    chownat(file, "", Some(Uid::from_raw(uid)), gid, AtFlags::EMPTY_PATH)
}

/// What to change about a file.
struct Change {
    mode: Option<u32>,
    uid: Option<u32>,
    gid: Option<u32>,
    size: Option<u64>,
    atime: Option<TimeOrNow>,
    mtime: Option<TimeOrNow>,
}

/// The path to a file that is only known by an `O_PATH` descriptor.
fn path_of(file: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn reopen(file: &OwnedFd, flags: OFlags) -> Done<OwnedFd> {
    openat(CWD, path_of(file), flags | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a file as somebody asks for it. Without `O_APPEND` nobody may write to a file to which only that is allowed (`chattr +a`).
fn open_node(node: &OwnedFd, flags: i32) -> Done<OwnedFd> {
    let asked = of_file(flags);
    match reopen(node, asked) {
        Err(Answer::PERM) if flags & libc::O_APPEND != 0 => reopen(node, asked | OFlags::APPEND),
        opened => opened,
    }
}

/// The flags of an open that concern the file. How data is cached is the kernel's business, on its side of the server; whether it is
/// appended is said with each write (`put`).
fn of_file(flags: i32) -> OFlags {
    let others = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::DIRECT | OFlags::APPEND;
    (OFlags::from_bits_retain(flags as u32) - others) | OFlags::CLOEXEC
}

/// Writes data. `flags` are those of whoever writes it. What was stored through a mapping has none and belongs where it is, though the
/// kernel takes any descriptor for it, even one that appends.
fn put(file: &Opened, data: &[u8], offset: u64, flags: i32) -> Done<usize> {
    let mut how = ReadWriteFlags::empty();
    how.set(ReadWriteFlags::APPEND, flags & libc::O_APPEND != 0);
    retry_on_intr(|| pwritev2(file, &[IoSlice::new(data)], offset, how))
}

fn attributes(number: u64, stat: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec as u32),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec as u32),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec as u32),
        crtime: UNIX_EPOCH,
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

/// Attributes of no file.
fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: Kind::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::NamedPipe,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice => Kind::CharDevice,
        FileType::BlockDevice => Kind::BlockDevice,
        _ => Kind::RegularFile,
    }
}

fn time(seconds: i64, nanos: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|base| base.checked_add(Duration::from_nanos(nanos.into()))).unwrap_or(UNIX_EPOCH)
}

fn time_to_set(time: &Option<TimeOrNow>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Timespec { tv_sec: since.as_secs() as i64, tv_nsec: since.subsec_nanos().into() },
            Err(before) => {
                // fuser 0.18 subtracts the nanoseconds from negative seconds, to which they should be added.
                let before = before.duration();
                Timespec { tv_sec: -(before.as_secs() as i64), tv_nsec: before.subsec_nanos().into() }
            }
        },
    }
}

fn errno(answer: Answer) -> Errno {
    Errno::from_i32(answer.raw_os_error())
}

/// Answers that carry nothing, and those that tell of a file.
fn empty(reply: ReplyEmpty, done: Done<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(answer) => reply.error(errno(answer)),
    }
}

/// A value of any length: asked for its length first, then for itself.
fn value(reply: ReplyXattr, size: u32, done: impl FnOnce(&mut [u8]) -> Done<usize>) {
    // The kernel's own limit of values and lists (XATTR_SIZE_MAX in include/uapi/linux/limits.h).
    let mut buffer = vec![0; 64 << 10];
    match done(&mut buffer) {
        Ok(length) if size == 0 => reply.size(length as u32),
        Ok(length) if length > size as usize => reply.error(Errno::ERANGE),
        Ok(length) => reply.data(&buffer[..length]),
        Err(answer) => reply.error(errno(answer)),
    }
}

impl Filesystem for Passthrough {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.node(parent).and_then(|parent| self.look_up(parent.as_fd(), name));
        match found {
            // No file has this number: the kernel remembers that there is none.
            Err(Answer::NOENT) if !self.caching.negative.is_zero() => {
                reply.entry(&self.caching.negative, &nothing(), Generation(0));
            }
            found => self.entry(reply, found),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, times: u64) {
        self.nodes.forget(ino.0, times);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.node(ino).and_then(|node| fstat(&node)) {
            Ok(stat) => reply.attr(&self.caching.attributes, &attributes(ino.0, &stat)),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.change(ino, handle, &Change { mode, uid, gid, size, atime, mtime }) {
            Ok(attributes) => reply.attr(&self.caching.attributes, &attributes),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.node(ino).and_then(|node| readlinkat(&node, "", Vec::new())) {
            Ok(target) => reply.data(target.as_bytes()),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn mknod(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, rdev: u32, reply: ReplyEntry) {
        let done = self.node(parent).and_then(|parent| {
            let (kind, mode) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode));
            let file = if kind == FileType::RegularFile {
                reopen(&Self::make_file(&parent, name, OFlags::WRONLY, mode, who(request))?, OFlags::PATH)?
            } else {
                mknodat(&parent, name, kind, mode, rdev.into())?;
                give_by_name(&parent, name, kind, who(request))?
            };
            self.tell(file)
        });
        self.entry(reply, done);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let done = self.node(parent).and_then(|parent| {
            mkdirat(&parent, name, Mode::from_raw_mode(mode))?;
            self.tell(give_by_name(&parent, name, FileType::Directory, who(request))?)
        });
        self.entry(reply, done);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.node(parent).and_then(|parent| unlinkat(&parent, name, AtFlags::empty())));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.node(parent).and_then(|parent| unlinkat(&parent, name, AtFlags::REMOVEDIR)));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let done = self.node(parent).and_then(|parent| {
            symlinkat(target, &parent, name)?;
            self.tell(give_by_name(&parent, name, FileType::Symlink, who(request))?)
        });
        self.entry(reply, done);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let done = self.node(parent).and_then(|parent| {
            let new_parent = self.node(new_parent)?;
            renameat_with(&parent, name, &new_parent, new_name, flags)
        });
        empty(reply, done);
    }

    fn link(&self, _: &Request, ino: INodeNo, new_parent: INodeNo, new_name: &OsStr, reply: ReplyEntry) {
        let done = self.node(ino).and_then(|node| {
            let new_parent = self.node(new_parent)?;
            linkat(&node, "", &new_parent, new_name, AtFlags::EMPTY_PATH)?;
            self.look_up(new_parent.as_fd(), new_name)
        });
        self.entry(reply, done);
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.node(ino).and_then(|node| open_node(&node, flags.0)) {
            Ok(file) => reply.opened(self.keep_open(file), self.kept()),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.make_and_open(who(request), parent, name, mode, flags) {
            Ok((attributes, handle)) => {
                let believed = self.caching.attributes.min(self.caching.entry);
                reply.created(&believed, &attributes, Generation(0), handle, self.kept());
            }
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = vec![0; size as usize];
        let read = self.opened(handle).and_then(|file| {
            let mut length = 0;
            while length < buffer.len() {
                match retry_on_intr(|| pread(&file, &mut buffer[length..], offset + length as u64))? {
                    0 => break,
                    more => length += more,
                }
            }
            Ok(length)
        });
        match read {
            Ok(length) => reply.data(&buffer[..length]),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.opened(handle).and_then(|file| put(&file, data, offset, flags.0)) {
            Ok(length) => reply.written(length as u32),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    /// A close may fail even where no write has, so it is tried on a copy of the descriptor.
    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        empty(reply, self.opened(handle).and_then(|file| fcntl_dupfd_cloexec(&file, 0)).map(drop));
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.close(handle);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, is_data_only: bool, reply: ReplyEmpty) {
        let done = self.opened(handle).and_then(|file| if is_data_only { fdatasync(&file) } else { fsync(&file) });
        empty(reply, done);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match self.node(ino).and_then(|node| openat(&node, ".", flags, Mode::empty())) {
            Ok(directory) => reply.opened(self.keep_open(directory), FopenFlags::empty()),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        match self.read_directory(handle, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.close(handle);
        reply.ok();
    }

    fn fsyncdir(&self, request: &Request, ino: INodeNo, handle: FileHandle, is_data_only: bool, reply: ReplyEmpty) {
        self.fsync(request, ino, handle, is_data_only, reply);
    }

    fn statfs(&self, _: &Request, ino: INodeNo, reply: ReplyStatfs) {
        match self.node(ino).and_then(|node| fstatvfs(&node)) {
            Ok(stat) => reply.statfs(
                stat.f_blocks,
                stat.f_bfree,
                stat.f_bavail,
                stat.f_files,
                stat.f_ffree,
                stat.f_bsize as u32,
                stat.f_namemax as u32,
                stat.f_frsize as u32,
            ),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn setxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, value: &[u8], flags: i32, _: u32, reply: ReplyEmpty) {
        let flags = XattrFlags::from_bits_retain(flags as u32);
        empty(reply, self.node(ino).and_then(|node| setxattr(path_of(&node), name, value, flags)));
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        value(reply, size, |buffer| self.node(ino).and_then(|node| getxattr(path_of(&node), name, buffer)));
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        value(reply, size, |buffer| self.node(ino).and_then(|node| listxattr(path_of(&node), buffer)));
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.node(ino).and_then(|node| removexattr(path_of(&node), name)));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        empty(reply, self.opened(handle).and_then(|file| fallocate(&file, mode, offset, length)));
    }

    fn lseek(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let offset = u64::try_from(offset).map_err(|_| Answer::NXIO);
        let found = self.opened(handle).and_then(|file| match whence {
            libc::SEEK_DATA => seek(&file, SeekFrom::Data(offset?)),
            libc::SEEK_HOLE => seek(&file, SeekFrom::Hole(offset?)),
            // The kernel handles all others itself.
            _ => Err(Answer::INVAL),
        });
        match found {
            Ok(offset) => reply.offset(offset as i64),
            Err(answer) => reply.error(errno(answer)),
        }
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        from: FileHandle,
        mut from_offset: u64,
        _: INodeNo,
        to: FileHandle,
        mut to_offset: u64,
        length: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let copied = self.opened(from).and_then(|from| {
            let to = self.opened(to)?;
            // The answer has 32 bits.
            let length = length.min(1 << 30) as usize;
            copy_file_range(&from, Some(&mut from_offset), &to, Some(&mut to_offset), length)
        });
        match copied {
            Ok(length) => reply.written(length as u32),
            Err(answer) => reply.error(errno(answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt},
    };

    use super::*;

    const ROOT: INodeNo = INodeNo(1);

    fn shown(directory: &Path) -> (Passthrough, OwnedFd) {
        let open = || openat(CWD, directory, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        (Passthrough::new(open(), Caching::default()).unwrap(), open())
    }

    /// Whoever may write in the directory can put another file in the place of a new one before the new one is given away.
    #[test]
    fn a_new_file_is_given_away_and_none_that_takes_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let (_, root) = shown(directory.path());
        let path = |name: &str| directory.path().join(name);
        let is = |name: &str| fs::symlink_metadata(path(name)).map(|file| (file.uid(), file.mode() & 0o7777)).unwrap();
        let asked = Mode::from_raw_mode(0o6711);

        fs::write(path("program"), "").unwrap();
        fs::set_permissions(path("program"), fs::Permissions::from_mode(0o4755)).unwrap();
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&root, "new", new, asked).unwrap();
        fs::rename(path("new"), path("moved")).unwrap();
        fs::hard_link(path("program"), path("new")).unwrap();
        give_file(&root, &file, asked, (1000, 1000)).unwrap();
        assert_eq!((is("moved"), is("program")), ((1000, 0o6711), (0, 0o4755)));

        // Those that are not opened: of another type, with a second name, and somebody else's.
        let pipe = |name: &str| mknodat(&root, name, FileType::Fifo, Mode::RUSR, 0).unwrap();
        pipe("pipe");
        fs::hard_link(path("pipe"), path("second")).unwrap();
        fs::create_dir(path("other")).unwrap();
        std::os::unix::fs::chown(path("other"), Some(7), None).unwrap();
        for (name, kind) in [("new", FileType::Fifo), ("second", FileType::Fifo), ("other", FileType::Directory)] {
            let before = is(name);
            give_by_name(&root, name.as_ref(), kind, (1000, 1000)).unwrap();
            assert_eq!(is(name), before, "{name}");
        }
        pipe("made");
        give_by_name(&root, "made".as_ref(), FileType::Fifo, (1000, 1000)).unwrap();
        assert_eq!(is("made"), (1000, 0o400));
    }

    /// The kernel checks no permission once it has asked for a file to be made. It does when it has looked up one that is there.
    #[test]
    fn a_file_that_is_there_is_not_opened_in_place_of_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let (shows, _) = shown(directory.path());
        let path = |name: &str| directory.path().join(name);
        fs::write(path("private"), "private").unwrap();
        fs::set_permissions(path("private"), fs::Permissions::from_mode(0o600)).unwrap();
        let make = |name: &str, more| {
            shows.make_and_open((1000, 1000), ROOT, name.as_ref(), libc::S_IFREG | 0o4711, libc::O_RDWR | more)
        };
        assert_eq!(make("private", 0).unwrap_err(), Answer::STALE);
        assert_eq!(make("private", libc::O_TRUNC).unwrap_err(), Answer::STALE);
        assert_eq!(make("private", libc::O_EXCL).unwrap_err(), Answer::EXIST);
        assert_eq!(fs::read(path("private")).unwrap(), b"private");
        assert!(shows.open.lock().unwrap().is_empty());

        let (told, handle) = make("new", libc::O_EXCL).unwrap();
        assert_eq!((told.uid, told.gid, told.perm), (1000, 1000, 0o4711));
        assert_eq!(fstat(&*shows.opened(handle).unwrap()).unwrap().st_ino, told.ino.0);
        let about = fs::metadata(path("new")).unwrap();
        assert_eq!((about.uid(), about.mode() & 0o7777), (1000, 0o4711));
    }

    #[test]
    fn only_what_is_appended_goes_to_the_end_of_a_file_that_is_open_for_that() {
        let directory = tempfile::tempdir().unwrap();
        let (shows, _) = shown(directory.path());
        let appends = libc::O_RDWR | libc::O_APPEND;
        let (_, handle) = shows.make_and_open((0, 0), ROOT, "log".as_ref(), libc::S_IFREG | 0o600, appends).unwrap();
        let file = shows.opened(handle).unwrap();
        // The kernel may not know yet that the file has become longer.
        assert_eq!(put(&file, b"first ", 0, appends), Ok(6));
        assert_eq!(put(&file, b"second", 0, appends), Ok(6));
        // A page of a mapping.
        assert_eq!(put(&file, b"F", 0, 0), Ok(1));
        assert_eq!(fs::read(directory.path().join("log")).unwrap(), b"First second");
    }
}
