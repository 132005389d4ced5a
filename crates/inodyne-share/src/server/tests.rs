//! What a guest that follows no rules can do: nothing outside of the directory, and nothing to other guests.

use std::{
    ffi::CString,
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use rustix::io::Errno;
use tempfile::TempDir;
use zerocopy::{FromBytes, IntoBytes};

use super::{Owners, ServeOptions, connection, export::Export, host::Host, nodes::ROOT, sandbox::keep_rights_to_files};
use crate::{
    coherence::Ordering,
    fuse::abi::{
        CopyFileRangeIn, CreateIn, EntryOut, FallocateIn, FileLock, GetXattrIn, InHeader, LK_FLOCK, LinkIn, LkIn,
        LseekIn, MkNodIn, OpenIn, OpenOut, OutHeader, ReadIn, SetAttrIn, SetXattrIn, WRITE_KILL_SUIDGID, WriteIn,
        opcode, set,
    },
    protocol::{
        frame::{self, Kind},
        greeting::{Hello, Purpose},
        invalidation::decode,
        resume::{Kept, decode_missing},
    },
    transport::{Inbox, Lost, Outbox, Stream, pair},
};

pub(super) fn host(directory: &Path) -> Arc<Host> {
    host_that(directory, |_| {})
}

/// One with other options.
pub(super) fn host_that(directory: &Path, change: impl FnOnce(&mut ServeOptions)) -> Arc<Host> {
    let mut options = ServeOptions {
        owner: (0, 0),
        xattrs_by_virtiofs: false,
        most_nodes: 1000,
        read_only: false,
        withhold_types: false,
        owners: Owners::Squash,
        ordering: Ordering::Strict,
        watch: false,
        announce: true,
        delay: Duration::ZERO,
    };
    change(&mut options);
    Host::new(directory.into(), Export::open_root(directory).unwrap(), options).unwrap()
}

/// A guest that says what it likes.
pub(super) struct Liar {
    outbox: Arc<Outbox>,
    inbox: Inbox,
    stream: Arc<dyn Stream>,
    last: u64,
    /// Who asks: user and group.
    asks: u32,
}

impl Liar {
    pub(super) fn new(host: &Arc<Host>) -> Self {
        Self::saying(host, &Hello::new(Purpose::Mount { uid: 1, gid: 2, session: None, events: false }))
    }

    fn saying(host: &Arc<Host>, hello: &Hello) -> Self {
        let mut liar = Self::silent(host);
        let hello = serde_json::to_vec(hello).unwrap();
        liar.outbox.send(&frame::whole(Kind::Hello, &hello));
        assert_eq!(liar.inbox.next(&mut Vec::new()), Ok(Kind::Welcome));
        liar
    }

    /// Without the handshake.
    fn silent(host: &Arc<Host>) -> Self {
        let (ours, theirs) = pair();
        let host = host.clone();
        thread::spawn(move || connection::serve(&host, theirs, ()));
        ours.set_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut inbox = Inbox::new(ours.clone());
        inbox.trust();
        Self { outbox: Outbox::new(ours.clone()), inbox, stream: ours, last: 0, asks: 0 }
    }

    /// Waits until it is told of a change. Returns the number of that message.
    pub(super) fn told(&mut self) -> u64 {
        let mut payload = Vec::new();
        assert_eq!(self.inbox.next(&mut payload), Ok(Kind::Invalidate));
        decode(&payload).unwrap().0
    }

    /// Acknowledges one.
    pub(super) fn acknowledge(&self, number: u64) {
        self.outbox.send(&frame::whole(Kind::Acknowledge, &number.to_le_bytes()));
    }

    /// Makes a request that is not answered.
    fn say(&mut self, opcode: u32, node: u64, body: &[&[u8]]) {
        self.last += 1;
        let body = body.concat();
        let (len, unique, uid) = ((40 + body.len()) as u32, self.last, self.asks);
        let header = InHeader { len, opcode, unique, node, uid, gid: uid, ..InHeader::default() };
        self.outbox.send(&frame::whole(Kind::Request, &[header.as_bytes(), &body].concat()));
    }

    pub(super) fn ask(&mut self, opcode: u32, node: u64, body: &[&[u8]]) -> Result<Vec<u8>, Errno> {
        self.say(opcode, node, body);
        let mut payload = Vec::new();
        loop {
            let kind = self.inbox.next(&mut payload).unwrap();
            if matches!(kind, Kind::Reply | Kind::LastReply | Kind::ChangedReply) {
                let (out, body) = OutHeader::read_from_prefix(&payload).unwrap();
                assert_eq!(out.unique, self.last);
                return if out.error == 0 { Ok(body.into()) } else { Err(Errno::from_raw_os_error(-out.error)) };
            }
        }
    }

    pub(super) fn lookup(&mut self, node: u64, name: &str) -> Result<u64, Errno> {
        let body = self.ask(opcode::LOOKUP, node, &[name.as_bytes(), b"\0"])?;
        let (entry, _) = EntryOut::read_from_prefix(&body).unwrap();
        if entry.node == 0 { Err(Errno::NOENT) } else { Ok(entry.node) }
    }

    fn open(&mut self, node: u64, flags: i32) -> Result<u64, Errno> {
        let body = self.ask(opcode::OPEN, node, &[OpenIn { flags: flags as u32, open_flags: 0 }.as_bytes()])?;
        Ok(OpenOut::read_from_prefix(&body).unwrap().0.fh)
    }

    fn read(&mut self, node: u64, fh: u64) -> Result<Vec<u8>, Errno> {
        self.ask(opcode::READ, node, &[ReadIn { fh, size: 100, ..ReadIn::default() }.as_bytes()])
    }

    fn write(&mut self, node: u64, fh: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let ask = WriteIn { fh, offset, size: data.len() as u32, ..WriteIn::default() };
        self.ask(opcode::WRITE, node, &[ask.as_bytes(), data]).map(drop)
    }
}

impl Liar {
    /// Says what it has kept. Returns the places of what is not there.
    fn resume(&mut self, list: &[Kept]) -> Vec<usize> {
        let mut payload = Vec::new();
        list.iter().for_each(|one| one.encode(&mut payload));
        self.outbox.send(&frame::whole(Kind::Resume, &payload));
        assert_eq!(self.inbox.next(&mut payload), Ok(Kind::Resumed));
        decode_missing(&payload).collect()
    }
}

/// A directory to share, and a secret beside it.
pub(super) fn beside_a_secret() -> (TempDir, std::path::PathBuf) {
    let all = tempfile::tempdir().unwrap();
    fs::write(all.path().join("secret"), "secret").unwrap();
    let shared = all.path().join("shared");
    fs::create_dir_all(shared.join("d")).unwrap();
    fs::write(shared.join("d/f"), "shared").unwrap();
    (all, shared)
}

/// Where owners are squashed, no guest makes a program with capabilities on the host, or reads what only root may.
#[test]
fn a_guest_gives_no_file_rights() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let mut guest = Liar::new(&host);
    let directory = guest.lookup(ROOT, "d").unwrap();
    let file = guest.lookup(directory, "f").unwrap();
    let value = SetXattrIn { size: 5, flags: 0 };
    let mut set = |name: &[u8]| guest.ask(opcode::SETXATTR, file, &[value.as_bytes(), name, b"\0value"]).map(drop);
    assert_eq!(set(b"security.capability"), Err(Errno::OPNOTSUPP));
    assert_eq!(set(b"trusted.a"), Err(Errno::OPNOTSUPP));
    assert_eq!(set(b"user.a"), Ok(()));
    // Only root can do this; for others there is nothing to be hidden.
    let _ = rustix::fs::setxattr(shared.join("d/f"), c"trusted.b", b"secret", rustix::fs::XattrFlags::empty());
    let room = GetXattrIn { size: 100, padding: 0 };
    assert_eq!(guest.ask(opcode::LISTXATTR, file, &[room.as_bytes()]), Ok(b"user.a\0".into()));
    assert_eq!(guest.ask(opcode::LISTXATTR, file, &[GetXattrIn { size: 3, padding: 0 }.as_bytes()]), Err(Errno::RANGE));
    let length = guest.ask(opcode::LISTXATTR, file, &[GetXattrIn::default().as_bytes()]).unwrap();
    assert_eq!(length[..4], 7u32.to_le_bytes());
    let mut get = |name: &[u8]| guest.ask(opcode::GETXATTR, file, &[room.as_bytes(), name, b"\0"]);
    assert_eq!(get(b"user.a"), Ok(b"value".into()));
    assert_eq!(get(b"trusted.b"), Err(Errno::NODATA));
    assert_eq!(guest.ask(opcode::REMOVEXATTR, file, &[b"trusted.b\0"]), Err(Errno::OPNOTSUPP));
}

/// A node is what it was at another host, or nothing; whoever says so gets nothing else.
#[test]
fn what_a_guest_has_kept_is_the_same_file_or_nothing() {
    let (all, shared) = beside_a_secret();
    fs::write(shared.join("d/other"), "other").unwrap();
    symlink(all.path(), shared.join("up")).unwrap();
    let node =
        |node, directory, name: &str| Kept::Node { node, directory, lookups: 2, name: CString::new(name).unwrap() };
    let file = |handle, node, access| Kept::File { handle, node, access };
    let before = host(&shared);
    let mut guest = Liar::new(&before);
    let [directory, up] = ["d", "up"].map(|name| guest.lookup(ROOT, name).unwrap());
    let [known, other] = ["f", "other"].map(|name| guest.lookup(directory, name).unwrap());
    fs::rename(shared.join("d/other"), shared.join("d/moved")).unwrap();

    let after = host(&shared);
    let mut guest = Liar::new(&after);
    assert!(guest.open(known, libc::O_RDONLY).is_err(), "it does not know it yet");
    let list = [
        node(directory, ROOT, "d"),
        node(known, directory, "f"),
        file(70, known, libc::O_RDONLY as u8),
        // Gone from there; another file; nothing that a directory has; in no directory that is known; out of the directory.
        node(other, directory, "other"),
        node(other, directory, "f"),
        node(known, directory, "../d/f"),
        node(known, directory, ".."),
        node(known, other, "f"),
        node(up, ROOT, "up"),
        node(up + 1, up, "secret"),
        file(71, other, libc::O_RDONLY as u8),
        file(70, known, libc::O_RDWR as u8),
    ];
    assert_eq!(guest.resume(&list), [3, 4, 5, 6, 7, 9, 10, 11]);
    assert_eq!(guest.read(known, 70), Ok(b"shared".into()));
    assert_eq!(guest.open(up, libc::O_RDONLY), Err(Errno::LOOP));
    assert_eq!(guest.read(known, 71), Err(Errno::STALE));
    // It holds it as often as it did, and no more often than it was believed.
    let held = |guest: &mut Liar| {
        guest.ask(opcode::GETATTR, ROOT, &[&[0; 16]]).unwrap();
        after.export.nodes().holds(1, known)
    };
    let forget = |guest: &mut Liar| {
        let body = 1u64.to_le_bytes();
        let header = InHeader { len: 48, opcode: opcode::FORGET, node: known, ..InHeader::default() };
        guest.outbox.send(&frame::whole(Kind::Request, &[header.as_bytes(), &body].concat()));
        let waited = Instant::now();
        while held(guest) && waited.elapsed() < Duration::from_millis(200) {}
    };
    forget(&mut guest);
    assert!(held(&mut guest));
    forget(&mut guest);
    assert!(!held(&mut guest));
    // Another guest has nothing of it.
    assert_eq!(Liar::new(&after).read(known, 70), Err(Errno::STALE));
}

/// The same mount comes back, while the host has not noticed that its first connection is dead.
#[test]
fn a_guest_that_comes_again_finds_its_locks_free() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let hello = |session| Hello::new(Purpose::Mount { uid: 1, gid: 2, session, events: false });
    let mut guests: Vec<Liar> = [Some([1, 2]), Some([3, 4])].map(|session| Liar::saying(&host, &hello(session))).into();
    let lock = |guest: &mut Liar| {
        let directory = guest.lookup(ROOT, "d").unwrap();
        let file = guest.lookup(directory, "f").unwrap();
        let fh = guest.open(file, libc::O_RDWR).unwrap();
        let lock = FileLock { kind: libc::F_WRLCK as u32, ..FileLock::default() };
        guest.ask(opcode::SETLK, file, &[LkIn { fh, lock, flags: LK_FLOCK, ..LkIn::default() }.as_bytes()])
    };
    assert!(lock(&mut guests[0]).is_ok());
    assert_eq!(lock(&mut guests[1]), Err(Errno::AGAIN));
    let mut again = Liar::saying(&host, &hello(Some([1, 2])));
    assert!(lock(&mut again).is_ok());
    assert_eq!(host.guests().len(), 2);
    assert_eq!(guests[0].inbox.next(&mut Vec::new()), Err(Lost::Ended));
    assert!(guests[1].lookup(ROOT, "d").is_ok());
}

#[test]
fn no_file_is_changed_by_the_handle_of_another() {
    let (_all, shared) = beside_a_secret();
    fs::write(shared.join("other"), "other").unwrap();
    let host = host(&shared);
    let mut liar = Liar::new(&host);
    let [directory, other] = ["d", "other"].map(|name| liar.lookup(ROOT, name).unwrap());
    let fh = liar.open(other, libc::O_RDWR).unwrap();
    let file = liar.lookup(directory, "f").unwrap();
    let empty = SetAttrIn { valid: set::SIZE | set::FH, fh, ..SetAttrIn::default() };
    assert_eq!(liar.ask(opcode::SETATTR, file, &[empty.as_bytes()]), Err(Errno::BADF));
    assert_eq!(fs::read(shared.join("other")).unwrap(), b"other");
    assert!(liar.ask(opcode::SETATTR, other, &[empty.as_bytes()]).is_ok());
    assert_eq!(fs::read(shared.join("other")).unwrap(), b"");
}

#[test]
fn names_lead_down_only() {
    let (all, shared) = beside_a_secret();
    symlink(all.path(), shared.join("up")).unwrap();
    symlink("../secret", shared.join("file")).unwrap();
    let host = host(&shared);
    let mut liar = Liar::new(&host);
    for name in ["..", ".", "", "d/../..", "d/f", "/etc", "../secret"] {
        assert_eq!(liar.lookup(ROOT, name), Err(Errno::INVAL), "{name:?}");
    }
    // A link is a link: it can be read, and is neither a directory nor a file.
    let up = liar.lookup(ROOT, "up").unwrap();
    assert_eq!(liar.lookup(up, "secret"), Err(Errno::NOTDIR));
    let file = liar.lookup(ROOT, "file").unwrap();
    assert_eq!(liar.open(file, libc::O_RDWR), Err(Errno::LOOP));
    assert_eq!(liar.ask(opcode::READLINK, file, &[]).unwrap(), b"../secret");
    assert_eq!(liar.ask(opcode::RMDIR, ROOT, &[b"..\0"]), Err(Errno::INVAL));
    // Nodes and handles that were never given out.
    for node in [0, 99, u64::MAX] {
        assert_eq!(liar.lookup(node, "f"), Err(Errno::STALE));
        assert_eq!(liar.read(node, 77), Err(Errno::STALE));
    }
}

#[test]
fn a_directory_that_became_a_link_leads_nowhere() {
    let (all, shared) = beside_a_secret();
    let host = host(&shared);
    let mut liar = Liar::new(&host);
    let directory = liar.lookup(ROOT, "d").unwrap();
    let file = liar.lookup(directory, "f").unwrap();
    fs::write(all.path().join("f"), "secret").unwrap();
    fs::rename(shared.join("d"), shared.join("moved")).unwrap();
    symlink(all.path(), shared.join("d")).unwrap();
    host.export.drop_all_descriptors();
    assert_eq!(liar.open(file, libc::O_RDONLY), Err(Errno::STALE));
    assert_eq!(liar.lookup(directory, "f"), Err(Errno::STALE));
    assert_eq!(liar.ask(opcode::UNLINK, directory, &[b"f\0"]), Err(Errno::STALE));
    assert!(all.path().join("f").exists());
}

/// While a directory is swapped for a link all the time, as fast as possible.
#[test]
fn races_are_not_won() {
    let (all, shared) = beside_a_secret();
    fs::write(all.path().join("f"), "secret").unwrap();
    let host = host(&shared);
    let mut liar = Liar::new(&host);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let over = || is_over.load(std::sync::atomic::Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (directory, kept) = (shared.join("d"), shared.join("kept"));
            while !over() {
                fs::rename(&directory, &kept).unwrap();
                symlink(all.path(), &directory).unwrap();
                fs::remove_file(&directory).unwrap();
                fs::rename(&kept, &directory).unwrap();
            }
        });
        let (mut read, mut tries) = (0, 0);
        // Until something was read: otherwise nothing would be shown.
        while tries < 1500 || read == 0 {
            tries += 1;
            host.export.drop_all_descriptors();
            let Ok(directory) = liar.lookup(ROOT, "d") else { continue };
            let Ok(file) = liar.lookup(directory, "f") else { continue };
            host.export.drop_all_descriptors();
            let Ok(fh) = liar.open(file, libc::O_RDONLY) else { continue };
            assert_eq!(liar.read(file, fh).unwrap(), b"shared");
            liar.say(opcode::RELEASE, file, &[&fh.to_le_bytes(), &[0; 16]]);
            read += 1;
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn devices_are_neither_made_nor_opened() {
    let (_all, shared) = beside_a_secret();
    let device = rustix::fs::makedev(1, 3);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        shared.join("null"),
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::RWXU,
        device,
    )
    .expect("as root");
    let host = host(&shared);
    let mut liar = Liar::new(&host);
    let null = liar.lookup(ROOT, "null").unwrap();
    assert_eq!(liar.open(null, libc::O_RDWR), Err(Errno::ACCESS));
    for kind in [libc::S_IFCHR, libc::S_IFBLK] {
        let ask = MkNodIn { mode: kind | 0o666, rdev: 0x103, ..MkNodIn::default() };
        assert_eq!(liar.ask(opcode::MKNOD, ROOT, &[ask.as_bytes(), b"made\0"]), Err(Errno::PERM));
    }
    let ask = MkNodIn { mode: libc::S_IFIFO | 0o4666, ..MkNodIn::default() };
    liar.ask(opcode::MKNOD, ROOT, &[ask.as_bytes(), b"pipe\0"]).unwrap();
    let made = fs::metadata(shared.join("pipe")).unwrap();
    assert!(made.file_type().is_fifo() && made.permissions().mode() & 0o4000 == 0);
    let pipe = liar.lookup(ROOT, "pipe").unwrap();
    assert_eq!(liar.open(pipe, libc::O_RDONLY), Err(Errno::ACCESS));
}

#[test]
fn handles_are_their_guest_s_and_go_with_it() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let (mut one, mut other) = (Liar::new(&host), Liar::new(&host));
    let directory = one.lookup(ROOT, "d").unwrap();
    let file = one.lookup(directory, "f").unwrap();
    let fh = one.open(file, libc::O_RDONLY).unwrap();
    assert_eq!(one.read(file, fh).unwrap(), b"shared");
    assert_eq!(other.read(file, fh), Err(Errno::STALE));
    assert_eq!(host.export.nodes().count(), 3);
    one.stream.close();
    drop(one);
    let is_gone = || host.handles.count() == 0 && host.export.nodes().count() == 1;
    assert!((0..2000).any(|_| is_gone() || {
        thread::sleep(Duration::from_millis(5));
        false
    }));
}

#[test]
fn a_guest_is_seen_in_the_status() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let mut liar = Liar::new(&host);
    liar.lookup(ROOT, "d").unwrap();
    let status = host.status();
    let [guest] = &status.guests[..] else { panic!("{status:?}") };
    assert_eq!((status.nodes, guest.nodes_held, guest.round_trips, guest.requests["lookup"]), (2, 2, 1, 1));
}

#[test]
fn nothing_is_answered_before_the_handshake_or_after_nonsense() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let lookup = InHeader { len: 42, opcode: opcode::LOOKUP, node: ROOT, unique: 1, ..InHeader::default() };
    let request = frame::whole(Kind::Request, &[lookup.as_bytes(), b"d\0"].concat());
    let mut liar = Liar::silent(&host);
    liar.outbox.send(&request);
    assert!(liar.inbox.next(&mut Vec::new()).is_err());
    let mut liar = Liar::new(&host);
    liar.outbox.send(&frame::whole(Kind::Request, b"too short"));
    assert!(liar.inbox.next(&mut Vec::new()).is_err());
    // Others are served all the same.
    assert!(Liar::new(&host).lookup(ROOT, "d").is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Requests that are right in form and wrong in all else: each is answered or has no answer, and the host goes on.
    #[test]
    fn no_request_breaks_the_host(
        asks in prop::collection::vec((1u32..53, 0u64..5, prop::collection::vec(any::<u8>(), 0..120)), 1..12),
    ) {
        let (all, shared) = beside_a_secret();
        let host = host(&shared);
        let mut liar = Liar::new(&host);
        let _ = liar.lookup(ROOT, "d");
        for (opcode, node, body) in asks {
            let is_silent =
                matches!(opcode, opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT | opcode::RELEASE | opcode::SETLKW);
            if !is_silent {
                let _ = liar.ask(opcode, node, &[&body, b"\0"]);
            }
        }
        prop_assert!(Liar::new(&host).ask(opcode::GETATTR, ROOT, &[&[0; 16]]).is_ok());
        prop_assert_eq!(fs::read(all.path().join("secret")).unwrap(), b"secret");
        prop_assert_eq!(fs::metadata(all.path()).unwrap().nlink(), 3);
    }
}

#[test]
fn a_guest_holds_so_many_files_and_no_more() {
    let (_all, shared) = beside_a_secret();
    (0..1100).for_each(|number| fs::write(shared.join(format!("d/{number}")), "").unwrap());
    let host = host(&shared);
    let most = host.options.most_nodes;
    let mut guest = Liar::new(&host);
    let d = guest.lookup(ROOT, "d").unwrap();
    let told: Vec<_> = (0..1100).map(|number| guest.lookup(d, &number.to_string())).collect();
    assert!(told[..most - 1].iter().all(Result::is_ok));
    assert!(told[most - 1..].iter().all(|told| *told == Err(Errno::NFILE)));
    // It may look up again what it holds, and others are not affected.
    assert_eq!(guest.lookup(d, "0"), told[0]);
    let mut other = Liar::new(&host);
    assert_eq!(other.lookup(ROOT, "d"), Ok(d));
    let last = other.lookup(d, "1099").unwrap();
    other.stream.close();

    // Nor may it say that it has held more before.
    let held = |node, name: &str| Kept::Node { node, directory: d, lookups: 1, name: CString::new(name).unwrap() };
    assert_eq!(guest.resume(&[held(told[0].unwrap(), "0"), held(last, "1099")]), [1]);
    guest.say(opcode::FORGET, told[0].unwrap(), &[&1u64.to_le_bytes()]);

    // Another name for a file that it holds is not another file.
    let ask = LinkIn { old_node: told[1].unwrap() };
    assert!(guest.ask(opcode::LINK, d, &[ask.as_bytes(), b"link\0"]).is_ok());

    // Nothing is made that it could not be told of, until it has forgotten something.
    let ask = MkNodIn { mode: libc::S_IFREG | 0o600, ..MkNodIn::default() };
    let make = |guest: &mut Liar| guest.ask(opcode::MKNOD, d, &[ask.as_bytes(), b"new\0"]).map(drop);
    assert_eq!(make(&mut guest), Err(Errno::NFILE));
    assert!(!shared.join("d/new").exists());
    for node in told[1..200].iter().flatten() {
        guest.say(opcode::FORGET, *node, &[&1u64.to_le_bytes()]);
    }
    assert_eq!(make(&mut guest), Ok(()));
    assert!(shared.join("d/new").exists());
}

/// Nobody else would tell them, and they would go on believing what they know.
#[test]
fn others_are_told_of_what_was_done_before_a_request_failed() {
    let (_all, shared) = beside_a_secret();
    fs::write(shared.join("one"), "").unwrap();
    fs::set_permissions(shared.join("d/f"), fs::Permissions::from_mode(0o4755)).unwrap();
    let host = host_that(&shared, |options| options.most_nodes = 2);
    let [mut one, mut other] = [Liar::new(&host), Liar::new(&host)];
    let directory = other.lookup(ROOT, "d").unwrap();
    let file = other.lookup(directory, "f").unwrap();
    for name in ["d", "one"] {
        one.lookup(ROOT, name).unwrap();
    }
    let fh = one.open(file, libc::O_RDONLY).unwrap();
    let mut fails = |number, node, body: &[&[u8]]| {
        one.say(number, node, body);
        let told = other.told();
        other.acknowledge(told);
        let mut payload = Vec::new();
        assert_eq!(one.inbox.next(&mut payload), Ok(Kind::Reply));
        -OutHeader::read_from_prefix(&payload).unwrap().0.error
    };
    // It may hold no third file, and is not told of this one.
    let link = LinkIn { old_node: file };
    assert_eq!(fails(opcode::LINK, directory, &[link.as_bytes(), b"link\0"]), libc::ENFILE);
    assert!(shared.join("d/link").exists());
    let write = WriteIn { fh, size: 1, write_flags: WRITE_KILL_SUIDGID, ..WriteIn::default() };
    assert_eq!(fails(opcode::WRITE, file, &[write.as_bytes(), b"x"]), libc::EBADF);
    assert_eq!(fs::metadata(shared.join("d/f")).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn answers_to_a_guest_that_does_not_read_do_not_pile_up() {
    let (_all, shared) = beside_a_secret();
    fs::write(shared.join("large"), vec![7; 1 << 20]).unwrap();
    let host = host(&shared);
    let mut guest = Liar::new(&host);
    let node = guest.lookup(ROOT, "large").unwrap();
    let fh = guest.open(node, libc::O_RDONLY).unwrap();
    let read = ReadIn { fh, size: 1 << 20, ..ReadIn::default() };
    let reads = || host.guests().values().next().unwrap().status(0).requests.get("read").copied().unwrap_or_default();
    const ASKED: u64 = 100;
    (0..ASKED).for_each(|_| guest.say(opcode::READ, node, &[read.as_bytes()]));
    let mut begun = 0;
    let until = Instant::now() + Duration::from_secs(20);
    // Until no further one is begun.
    while Instant::now() < until && (begun == 0 || begun < reads()) {
        begun = reads();
        thread::sleep(Duration::from_millis(300));
    }
    assert!(begun < 30, "{begun} of {ASKED} requests were begun");
    let mut payload = Vec::new();
    for _ in 0..ASKED {
        assert_eq!(guest.inbox.next(&mut payload), Ok(Kind::Reply));
        assert_eq!(payload.len(), 16 + (1 << 20));
    }
    assert_eq!(reads(), ASKED);
}

/// An fcntl(2) lock on the whole file.
fn whole(fh: u64, owner: u64, kind: i32) -> LkIn {
    let lock = FileLock { start: 0, end: i64::MAX as u64, kind: kind as u32, pid: 1 };
    LkIn { fh, owner, lock, ..LkIn::default() }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// An open file description lock, whose end the guest's kernel reports in no other way.
#[test]
fn a_lock_ends_with_the_open_file_and_asking_for_one_leaves_nothing() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let mut guests = [Liar::new(&host), Liar::new(&host)];
    let [(one, file), (other, _)] = [0, 1].map(|at| {
        let directory = guests[at].lookup(ROOT, "d").unwrap();
        let file = guests[at].lookup(directory, "f").unwrap();
        (guests[at].open(file, libc::O_RDWR).unwrap(), file)
    });
    let [first, second] = &mut guests;
    let kind = |answer: Vec<u8>| FileLock::read_from_prefix(&answer).unwrap().0.kind as i32;
    first.ask(opcode::SETLK, file, &[whole(one, 7, libc::F_WRLCK).as_bytes()]).unwrap();
    let mut asked = |owner| second.ask(opcode::GETLK, file, &[whole(other, owner, libc::F_RDLCK).as_bytes()]).unwrap();
    assert_eq!(kind(asked(8)), libc::F_WRLCK);
    let is_known =
        |owner| host.guests().keys().any(|guest| host.handles.known_lock_owner(&(*guest, file, owner)).is_some());
    assert!(is_known(7) && !is_known(8), "who only asks has no descriptor");
    first.say(opcode::RELEASE, file, &[&one.to_le_bytes(), &[0; 16]]);
    let mut lock = || second.ask(opcode::SETLK, file, &[whole(other, 8, libc::F_WRLCK).as_bytes()]);
    until("the lock of a file that is closed", || lock().is_ok());
}

#[test]
fn a_guest_waits_for_so_many_locks_and_no_more() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let mut guest = Liar::new(&host);
    let directory = guest.lookup(ROOT, "d").unwrap();
    let file = guest.lookup(directory, "f").unwrap();
    let [one, other] = [(), ()].map(|()| guest.open(file, libc::O_RDWR).unwrap());
    guest.ask(opcode::SETLK, file, &[whole(one, 1, libc::F_WRLCK).as_bytes()]).unwrap();
    (0..1025).for_each(|_| guest.say(opcode::SETLKW, file, &[whole(other, 2, libc::F_WRLCK).as_bytes()]));
    let mut payload = Vec::new();
    assert_eq!(guest.inbox.next(&mut payload), Ok(Kind::Reply));
    assert_eq!(OutHeader::read_from_prefix(&payload).unwrap().0.error, -libc::ENOLCK);
    // The others get it when it is free.
    guest.say(opcode::SETLK, file, &[whole(one, 1, libc::F_UNLCK).as_bytes()]);
    for _ in 0..1025 {
        assert_eq!(guest.inbox.next(&mut payload), Ok(Kind::Reply));
        assert_eq!(OutHeader::read_from_prefix(&payload).unwrap().0.error, 0);
    }
}

#[test]
fn whether_the_host_is_there_is_answered_before_slow_requests() {
    let (_all, shared) = beside_a_secret();
    let host = host_that(&shared, |options| options.delay = Duration::from_secs(1));
    let mut guest = Liar::new(&host);
    const ASKED: usize = 20;
    (0..ASKED).for_each(|_| guest.say(opcode::GETATTR, ROOT, &[&[0; 16]]));
    guest.outbox.send(&frame::whole(Kind::Ping, &[]));
    let mut payload = Vec::new();
    assert_eq!(guest.inbox.next(&mut payload), Ok(Kind::Pong));
    (0..ASKED).for_each(|_| assert_eq!(guest.inbox.next(&mut payload), Ok(Kind::Reply)));
}

/// Otherwise it would be done after what the guest asks when it comes back.
#[test]
fn what_was_asked_by_a_lost_connection_is_not_begun_any_more() {
    let (_all, shared) = beside_a_secret();
    let host = host_that(&shared, |options| options.delay = Duration::from_secs(1));
    let hello = Hello::new(Purpose::Mount { uid: 1, gid: 2, session: Some([1, 2]), events: false });
    let mut guest = Liar::saying(&host, &hello);
    for number in 0..30 {
        let name = format!("made-{number}\0");
        guest.say(opcode::MKDIR, ROOT, &[&0o755u32.to_le_bytes(), &[0; 4], name.as_bytes()]);
    }
    let made = || fs::read_dir(&shared).unwrap().count() - 1;
    until("nothing is made", || made() > 0);
    let mut again = Liar::saying(&host, &hello);
    again.lookup(ROOT, "d").unwrap();
    let before = made();
    assert!(before <= 8, "{before} directories");
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(made(), before);
}

/// Nor is a guest served while something of its lost connection is still being done.
#[test]
fn a_guest_that_comes_again_too_soon_has_to_come_once_more() {
    let (_all, shared) = beside_a_secret();
    let host = host_that(&shared, |options| options.delay = Duration::from_secs(8));
    let hello = Hello::new(Purpose::Mount { uid: 1, gid: 2, session: Some([1, 2]), events: false });
    let mut guest = Liar::saying(&host, &hello);
    guest.say(opcode::GETATTR, ROOT, &[&[0; 16]]);
    let began = || host.guests().values().next().is_some_and(|guest| guest.status(0).round_trips == 1);
    until("nothing is begun", began);
    host.delay(false);
    let mut again = Liar::saying(&host, &hello);
    assert_eq!(again.inbox.next(&mut Vec::new()), Err(Lost::Ended));
    until("the first one has not ended", || host.guests().is_empty());
    assert!(Liar::saying(&host, &hello).lookup(ROOT, "d").is_ok());
}

#[test]
fn a_directory_is_not_kept_by_a_kernel_that_hears_of_no_change() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let mut guest = Liar::new(&host);
    assert!(guest.ask(opcode::OPENDIR, ROOT, &[&[0; 8]]).is_ok());
    host.is_watched.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(guest.ask(opcode::OPENDIR, ROOT, &[&[0; 8]]), Err(Errno::NOSYS));
}

#[test]
fn what_is_removed_takes_up_nothing_unless_it_is_open() {
    let (_all, shared) = beside_a_secret();
    fs::hard_link(shared.join("d/f"), shared.join("d/second")).unwrap();
    let host = host(&shared);
    let mut guest = Liar::new(&host);
    let directory = guest.lookup(ROOT, "d").unwrap();
    let file = guest.lookup(directory, "f").unwrap();
    let fh = guest.open(file, libc::O_RDONLY).unwrap();
    let count = || host.export.descriptor_count();
    let attributes = |guest: &mut Liar| guest.ask(opcode::GETATTR, file, &[&[0; 16]]).map(drop);
    assert_eq!((attributes(&mut guest), count()), (Ok(()), 2));
    guest.ask(opcode::UNLINK, directory, &[b"f\0"]).unwrap();
    assert_eq!((attributes(&mut guest), count()), (Ok(()), 2), "it has another name");
    guest.lookup(directory, "second").unwrap();
    guest.ask(opcode::UNLINK, directory, &[b"second\0"]).unwrap();
    assert_eq!(count(), 1, "that of the directory");
    assert_eq!(attributes(&mut guest), Ok(()));
    assert_eq!(guest.read(file, fh).unwrap(), b"shared");
    guest.say(opcode::RELEASE, file, &[&fh.to_le_bytes(), &[0; 16]]);
    until("it is closed, and still there", || attributes(&mut guest) == Err(Errno::STALE));
    // A removed directory may be somebody's working directory.
    guest.ask(opcode::RMDIR, ROOT, &[b"d\0"]).unwrap();
    assert!(guest.ask(opcode::GETATTR, directory, &[&[0; 16]]).is_ok());
}

#[test]
fn what_a_user_of_a_guest_makes_belongs_to_that_user() {
    let (_all, shared) = beside_a_secret();
    let host = host_that(&shared, |options| options.owners = Owners::Keep);
    let mut guest = Liar::new(&host);
    guest.asks = 1000;
    let directory = guest.lookup(ROOT, "d").unwrap();
    let create = |mode| CreateIn { flags: (libc::O_RDWR | libc::O_EXCL) as u32, mode, ..CreateIn::default() };
    let make = |mode| MkNodIn { mode, ..MkNodIn::default() };
    let is = |name: &str, mode: u32| {
        let made = fs::symlink_metadata(shared.join("d").join(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (1000, 1000), "{name}");
        assert_eq!(made.mode() & 0o6711, mode, "{name}");
    };
    guest.ask(opcode::CREATE, directory, &[create(libc::S_IFREG | 0o6711).as_bytes(), b"created\0"]).unwrap();
    is("created", 0o6711);
    guest.ask(opcode::MKNOD, directory, &[make(libc::S_IFREG | 0o4700).as_bytes(), b"made\0"]).unwrap();
    is("made", 0o4700);
    guest.ask(opcode::MKNOD, directory, &[make(libc::S_IFIFO | 0o600).as_bytes(), b"pipe\0"]).unwrap();
    is("pipe", 0o600);
    guest.ask(opcode::MKDIR, directory, &[&0o700u32.to_le_bytes(), &[0; 4], b"directory\0"]).unwrap();
    is("directory", 0o700);
    guest.ask(opcode::SYMLINK, directory, &[b"link\0/secret\0"]).unwrap();
    is("link", 0o711);
}

/// Otherwise a guest would have any user of the host run what it has written as the program's owner.
#[test]
fn a_program_that_a_guest_has_changed_has_no_set_id_bits_whatever_the_guest_says() {
    let (_all, shared) = beside_a_secret();
    // Rights are given up by this thread, and those that it starts.
    thread::spawn(move || {
        let mode = |name: &str| fs::metadata(shared.join(name)).unwrap().mode() & 0o7777;
        for name in ["written", "emptied", "opened"] {
            fs::write(shared.join(name), "program").unwrap();
            fs::set_permissions(shared.join(name), fs::Permissions::from_mode(0o6755)).unwrap();
        }
        fs::create_dir(shared.join("group")).unwrap();
        std::os::unix::fs::chown(shared.join("group"), None, Some(7)).unwrap();
        assert!(keep_rights_to_files(Owners::Squash));
        let host = host(&shared);
        let mut guest = Liar::new(&host);
        let [written, emptied, opened, group] =
            ["written", "emptied", "opened", "group"].map(|name| guest.lookup(ROOT, name).unwrap());

        let fh = guest.open(written, libc::O_RDWR).unwrap();
        guest.write(written, fh, 0, b"other").unwrap();
        assert_eq!(mode("written"), 0o755);
        let empty = SetAttrIn { valid: set::SIZE, ..SetAttrIn::default() };
        guest.ask(opcode::SETATTR, emptied, &[empty.as_bytes()]).unwrap();
        assert_eq!(mode("emptied"), 0o755);
        guest.open(opened, libc::O_RDONLY | libc::O_TRUNC).unwrap();
        assert_eq!(mode("opened"), 0o755);

        // A directory of another group gets the bit and keeps it, and so does what is made there.
        for bits in [0o2770, 0o2775] {
            let change = SetAttrIn { valid: set::MODE, mode: bits, ..SetAttrIn::default() };
            guest.ask(opcode::SETATTR, group, &[change.as_bytes()]).unwrap();
            assert_eq!(mode("group"), bits);
        }
        guest.ask(opcode::MKDIR, group, &[&0o755u32.to_le_bytes(), &[0; 4], b"made\0"]).unwrap();
        let made = fs::metadata(shared.join("group/made")).unwrap();
        assert_eq!((made.gid(), made.mode() & 0o2700), (7, 0o2700));
    })
    .join()
    .unwrap();
}

/// Also by requests with which its kernel cannot say so; with others it does.
#[test]
fn a_program_for_which_room_is_made_or_data_copied_has_no_set_id_bits() {
    let (_all, shared) = beside_a_secret();
    let names = ["allocated", "copied"];
    for name in names {
        fs::write(shared.join(name), "program").unwrap();
        fs::set_permissions(shared.join(name), fs::Permissions::from_mode(0o6755)).unwrap();
    }
    let host = host_that(&shared, |options| options.owners = Owners::Keep);
    let mut guest = Liar::new(&host);
    let [allocated, copied] = names.map(|name| guest.lookup(ROOT, name).unwrap());
    let [fh_in, fh_out] = [allocated, copied].map(|node| guest.open(node, libc::O_RDWR).unwrap());
    let mut change = |asks| {
        guest.asks = asks;
        let allocate = FallocateIn { fh: fh_in, length: 100, ..FallocateIn::default() };
        guest.ask(opcode::FALLOCATE, allocated, &[allocate.as_bytes()]).unwrap();
        let copy = CopyFileRangeIn { fh_in, off_in: 0, node_out: copied, fh_out, off_out: 0, len: 4, flags: 0 };
        guest.ask(opcode::COPY_FILE_RANGE, allocated, &[copy.as_bytes()]).unwrap();
        names.map(|name| fs::metadata(shared.join(name)).unwrap().mode() & 0o7777)
    };
    assert_eq!(change(0), [0o6755; 2], "root may do this");
    assert_eq!(change(1000), [0o755; 2]);
}

#[test]
fn nothing_is_read_or_written_beyond_where_files_end() {
    let (_all, shared) = beside_a_secret();
    let host = host(&shared);
    let mut guest = Liar::new(&host);
    let directory = guest.lookup(ROOT, "d").unwrap();
    let file = guest.lookup(directory, "f").unwrap();
    let fh = guest.open(file, libc::O_RDWR).unwrap();
    for offset in [u64::MAX, u64::MAX - 3, 1 << 63] {
        assert_eq!(guest.write(file, fh, offset, b"wrong"), Err(Errno::INVAL), "{offset}");
        let read = ReadIn { fh, offset, size: 100, ..ReadIn::default() };
        assert_eq!(guest.ask(opcode::READ, file, &[read.as_bytes()]), Err(Errno::INVAL), "{offset}");
        let allocate = FallocateIn { fh, offset, length: u64::MAX, ..FallocateIn::default() };
        assert!(guest.ask(opcode::FALLOCATE, file, &[allocate.as_bytes()]).is_err(), "{offset}");
        let seek = LseekIn { fh, offset, whence: libc::SEEK_DATA as u32, padding: 0 };
        assert!(guest.ask(opcode::LSEEK, file, &[seek.as_bytes()]).is_err(), "{offset}");
        for (off_in, off_out) in [(offset, 0), (0, offset)] {
            let (fh_in, fh_out) = (fh, fh);
            let copy = CopyFileRangeIn { fh_in, off_in, node_out: file, fh_out, off_out, len: u64::MAX, flags: 0 };
            assert!(guest.ask(opcode::COPY_FILE_RANGE, file, &[copy.as_bytes()]).is_err(), "{copy:?}");
        }
    }
    assert!(guest.write(file, fh, i64::MAX as u64, b"wrong").is_err());
    assert_eq!(fs::read(shared.join("d/f")).unwrap(), b"shared");
}

/// A guest's kernel checks no permission once it has asked for a file to be made. It does when it has looked up one that is there.
#[test]
fn a_file_that_is_there_is_not_opened_in_place_of_a_new_one() {
    let (_all, shared) = beside_a_secret();
    let host = host_that(&shared, |options| options.owners = Owners::Keep);
    let mut guest = Liar::new(&host);
    guest.asks = 1000;
    fs::write(shared.join("private"), "private").unwrap();
    fs::set_permissions(shared.join("private"), fs::Permissions::from_mode(0o600)).unwrap();
    for (more, answer) in [(0, Errno::STALE), (libc::O_TRUNC, Errno::STALE), (libc::O_EXCL, Errno::EXIST)] {
        let flags = (libc::O_RDWR | more) as u32;
        let ask = CreateIn { flags, mode: libc::S_IFREG | 0o644, ..CreateIn::default() };
        assert_eq!(guest.ask(opcode::CREATE, ROOT, &[ask.as_bytes(), b"private\0"]), Err(answer));
    }
    assert_eq!((host.handles.count(), host.export.nodes().count()), (0, 1));
    assert_eq!(fs::read(shared.join("private")).unwrap(), b"private");
}

/// What a guest has open stays open, but leads nobody to the file anew: not even that guest.
#[test]
fn a_file_that_was_moved_out_is_neither_opened_again_nor_linked() {
    let (all, shared) = beside_a_secret();
    let host = host(&shared);
    let mut guest = Liar::new(&host);
    let directory = guest.lookup(ROOT, "d").unwrap();
    let file = guest.lookup(directory, "f").unwrap();
    let fh = guest.open(file, libc::O_RDWR).unwrap();
    fs::rename(shared.join("d/f"), all.path().join("moved")).unwrap();
    host.export.drop_all_descriptors();
    assert_eq!(guest.open(file, libc::O_RDWR), Err(Errno::STALE));
    let link = LinkIn { old_node: file };
    assert_eq!(guest.ask(opcode::LINK, directory, &[link.as_bytes(), b"link\0"]), Err(Errno::STALE));
    let empty = SetAttrIn { valid: set::SIZE, ..SetAttrIn::default() };
    assert_eq!(guest.ask(opcode::SETATTR, file, &[empty.as_bytes()]), Err(Errno::STALE));
    assert_eq!(guest.read(file, fh).unwrap(), b"shared");

    // A file that has no name is nowhere else.
    fs::remove_file(all.path().join("moved")).unwrap();
    let again = guest.open(file, libc::O_RDONLY).unwrap();
    assert_eq!(guest.read(file, again).unwrap(), b"shared");
}
