//! A virtual machine's side by hand: memory, a queue in it, and a monitor that hands both over.

use std::{
    fs::{self, File},
    os::unix::net::{UnixListener, UnixStream},
    sync::{Arc, atomic::Ordering::SeqCst, atomic::fence},
    thread,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    io::Errno,
};
use tempfile::TempDir;
use vhost::{
    VhostBackend, VhostUserMemoryRegionInfo, VringConfigData,
    vhost_user::{
        Frontend, VhostUserFrontend,
        message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures},
    },
};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;
use zerocopy::{FromBytes, IntoBytes};

use super::Machine;
use crate::{
    fuse::abi::{
        EntryOut, FileLock, GetXattrIn, InHeader, InitIn, InitOut, LK_FLOCK, LkIn, OpenIn, OpenOut, OutHeader, ReadIn,
        ReleaseIn, WriteIn, init, opcode,
    },
    server::{
        host::Host,
        nodes::ROOT,
        tests::{Liar, beside_a_secret, host},
    },
};

const SIZE: u64 = 4 << 20;
const PLACES: u16 = 16;
/// Where things are in the memory.
const TABLE: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const ASKED: u64 = 0x10_0000;
const ANSWER: u64 = 0x20_0000;

/// Flags of a descriptor.
const NEXT: u16 = 1;
const WRITE: u16 = 2;

/// The queue that is used; the first one is for what has no answer.
const QUEUE: usize = 1;

struct Driver {
    memory: GuestMemoryMmap,
    monitor: Frontend,
    kick: EventFd,
    call: EventFd,
    offered: u16,
    used: u16,
    last: u64,
}

impl Driver {
    /// A machine that has just started.
    fn new(host: &Arc<Host>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let stream = UnixStream::connect(&socket).unwrap();
        let machine = Machine::accept(host, listener).unwrap();
        thread::spawn(move || machine.serve());

        let file = memfd_create("memory", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, SIZE).unwrap();
        let file = FileOffset::new(File::from(file), 0);
        let memory =
            GuestMemoryMmap::<()>::from_ranges_with_files([(GuestAddress(0), SIZE as usize, Some(file))]).unwrap();
        let mut monitor = Frontend::from_stream(stream, 2);
        monitor.set_owner().unwrap();
        let features = monitor.get_features().unwrap();
        assert_eq!(features & 1 << 32, 1 << 32, "virtio 1.0");
        // No event indices: each answer is notified.
        monitor.set_features(1 << 32 | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits()).unwrap();
        let protocol = monitor.get_protocol_features().unwrap();
        assert!(protocol.contains(VhostUserProtocolFeatures::MQ));
        monitor.set_protocol_features(VhostUserProtocolFeatures::MQ).unwrap();
        assert_eq!(monitor.get_queue_num().unwrap(), 5);
        let region = memory.iter().next().unwrap();
        let base = memory.get_host_address(GuestAddress(0)).unwrap() as u64;
        let info = VhostUserMemoryRegionInfo::from_guest_region(region).unwrap();
        monitor.set_mem_table(&[info]).unwrap();
        let [kick, call] = [(), ()].map(|()| EventFd::new(0).unwrap());
        monitor.set_vring_num(QUEUE, PLACES).unwrap();
        let rings = VringConfigData {
            queue_max_size: PLACES,
            queue_size: PLACES,
            flags: 0,
            desc_table_addr: base + TABLE,
            used_ring_addr: base + USED,
            avail_ring_addr: base + AVAILABLE,
            log_addr: None,
        };
        monitor.set_vring_addr(QUEUE, &rings).unwrap();
        monitor.set_vring_base(QUEUE, 0).unwrap();
        monitor.set_vring_call(QUEUE, &call).unwrap();
        monitor.set_vring_kick(QUEUE, &kick).unwrap();
        monitor.set_vring_enable(QUEUE, true).unwrap();
        Self { memory, monitor, kick, call, offered: 0, used: 0, last: 0 }
    }

    /// With the share mounted.
    fn mounted(host: &Arc<Host>) -> Self {
        let mut driver = Self::new(host);
        driver.mount();
        driver
    }

    fn mount(&mut self) {
        let flags = (init::NO_OPENDIR_SUPPORT | init::MAX_PAGES | init::BIG_WRITES | init::DO_READDIRPLUS) as u32;
        let ask = InitIn { major: 7, minor: 45, max_readahead: 1 << 17, flags, ..InitIn::default() };
        let body = self.ask(opcode::INIT, 0, &[ask.as_bytes()]).unwrap();
        let (agreed, _) = InitOut::read_from_prefix(&body).unwrap();
        assert_eq!((agreed.major, agreed.minor), (7, 38));
    }

    /// A descriptor of the table.
    fn describe(&self, place: u16, at: u64, length: u32, flags: u16, next: u16) {
        let bytes = [&at.to_le_bytes()[..], &length.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()].concat();
        self.memory.write_slice(&bytes, GuestAddress(TABLE + u64::from(place) * 16)).unwrap();
    }

    /// Makes the chain that begins there available.
    fn offer(&mut self, head: u16) {
        let place = AVAILABLE + 4 + u64::from(self.offered % PLACES) * 2;
        self.memory.write_obj(head, GuestAddress(place)).unwrap();
        self.offered = self.offered.wrapping_add(1);
        fence(SeqCst);
        self.memory.write_obj(self.offered, GuestAddress(AVAILABLE + 2)).unwrap();
        self.kick.write(1).unwrap();
    }

    /// The next chain that comes back: where it begins, and how much was written.
    fn back(&mut self) -> (u32, u32) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            fence(SeqCst);
            let used: u16 = self.memory.read_obj(GuestAddress(USED + 2)).unwrap();
            if used != self.used {
                break;
            }
            assert!(Instant::now() < until, "nothing comes back");
            thread::sleep(Duration::from_micros(200));
        }
        let at = USED + 4 + u64::from(self.used % PLACES) * 8;
        self.used = self.used.wrapping_add(1);
        (self.memory.read_obj(GuestAddress(at)).unwrap(), self.memory.read_obj(GuestAddress(at + 4)).unwrap())
    }

    fn message(&mut self, opcode: u32, node: u64, body: &[&[u8]]) -> Vec<u8> {
        self.last += 1;
        let body = body.concat();
        let header = InHeader { len: (40 + body.len()) as u32, opcode, unique: self.last, node, ..InHeader::default() };
        [header.as_bytes(), &body].concat()
    }

    /// Offers bytes in two pieces, as the kernel does, with room for an answer: places 0 to 2, or others.
    fn say(&mut self, message: &[u8], room: u32, place: u16) {
        let at = ASKED + u64::from(place) * 0x1_0000;
        self.memory.write_slice(message, GuestAddress(at)).unwrap();
        let head = message.len().min(40) as u32;
        self.describe(place, at, head, NEXT, place + 1);
        let is_answered = room > 0;
        self.describe(place + 1, at + u64::from(head), message.len() as u32 - head, u16::from(is_answered), place + 2);
        self.describe(place + 2, ANSWER + u64::from(place) * 0x1_0000, room, WRITE, 0);
        self.offer(place);
    }

    /// The answer that was written for the chain at a place.
    fn answer(&self, place: u16, length: u32) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length as usize];
        self.memory.read_slice(&mut bytes, GuestAddress(ANSWER + u64::from(place) * 0x1_0000)).unwrap();
        let (out, body) = OutHeader::read_from_prefix(&bytes).unwrap();
        assert_eq!(out.len, length);
        if out.error == 0 { Ok(body.into()) } else { Err(Errno::from_raw_os_error(-out.error)) }
    }

    fn ask(&mut self, opcode: u32, node: u64, body: &[&[u8]]) -> Result<Vec<u8>, Errno> {
        let message = self.message(opcode, node, body);
        self.say(&message, 0x8000, 0);
        let (head, length) = self.back();
        assert_eq!(head, 0);
        self.answer(0, length)
    }

    fn lookup(&mut self, node: u64, name: &str) -> Result<EntryOut, Errno> {
        let body = self.ask(opcode::LOOKUP, node, &[name.as_bytes(), b"\0"])?;
        let (entry, _) = EntryOut::read_from_prefix(&body).unwrap();
        if entry.node == 0 { Err(Errno::NOENT) } else { Ok(entry) }
    }

    fn open(&mut self, node: u64, flags: i32) -> u64 {
        let ask = OpenIn { flags: flags as u32, open_flags: 0 };
        let body = self.ask(opcode::OPEN, node, &[ask.as_bytes()]).unwrap();
        OpenOut::read_from_prefix(&body).unwrap().0.fh
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The host, with the directory that belongs to it.
fn shared() -> (TempDir, std::path::PathBuf, Arc<Host>) {
    let (all, shared) = beside_a_secret();
    let host = host(&shared);
    (all, shared, host)
}

#[test]
fn a_machine_reads_and_writes_and_believes_nothing_for_long() {
    let (_all, shared, host) = shared();
    host.is_watched.store(true, SeqCst);
    let mut driver = Driver::mounted(&host);
    let directory = driver.lookup(ROOT, "d").unwrap();
    assert_eq!((directory.entry_valid, directory.attr_valid), (1, 1), "though the host is watched");
    let file = driver.lookup(directory.node, "f").unwrap().node;
    // Directories are opened: what the kernel reads of one that was not opened, it keeps until it hears of a change.
    let body = driver.ask(opcode::OPENDIR, directory.node, &[&[0; 8]]).unwrap();
    let (opened, _) = OpenOut::read_from_prefix(&body).unwrap();
    assert_eq!(opened.open_flags, 0);
    let read = ReadIn { size: 4096, ..ReadIn::default() };
    let entries = driver.ask(opcode::READDIRPLUS, directory.node, &[read.as_bytes()]).unwrap();
    assert!(entries.windows(1).any(|name| name == b"f") && entries.len().is_multiple_of(8), "{}", entries.len());
    assert_eq!(driver.ask(opcode::RELEASEDIR, directory.node, &[&[0; 24]]), Ok(Vec::new()));

    let name = [GetXattrIn { size: 100, padding: 0 }.as_bytes(), b"user.a\0"].concat();
    assert_eq!(driver.ask(opcode::GETXATTR, file, &[&name]), Err(Errno::NOSYS), "its kernel asks no more");

    let handle = driver.open(file, libc::O_RDWR);
    let data = b"written";
    let write = WriteIn { fh: handle, size: data.len() as u32, ..WriteIn::default() };
    driver.ask(opcode::WRITE, file, &[write.as_bytes(), data]).unwrap();
    assert_eq!(fs::read(shared.join("d/f")).unwrap(), data);
    let read = ReadIn { fh: handle, size: 100, ..ReadIn::default() };
    assert_eq!(driver.ask(opcode::READ, file, &[read.as_bytes()]), Ok(data.into()));
    assert_eq!(driver.ask(opcode::FSYNC, file, &[&handle.to_le_bytes(), &[0; 8]]), Ok(Vec::new()), "another thread's");
    // The kernel waits for an answer to what a mounter of ours would not ask.
    let release = ReleaseIn { fh: handle, ..ReleaseIn::default() };
    assert_eq!(driver.ask(opcode::RELEASE, file, &[release.as_bytes()]), Ok(Vec::new()));
    assert_eq!(driver.ask(opcode::READ, file, &[read.as_bytes()]), Err(Errno::STALE));
    let calls = driver.call.read().unwrap();
    assert!(calls > 5, "{calls} answers were told of");

    // It was told of the file twice.
    let message = driver.message(opcode::FORGET, file, &[&2u64.to_le_bytes()]);
    driver.say(&message, 0, 0);
    assert_eq!(driver.back(), (0, 0));
    assert!(!host.export.nodes().holds(1, file));
}

#[test]
fn who_is_told_of_changes_hears_of_a_machine_s_before_it_is_answered() {
    let (_all, _shared, host) = shared();
    let mut other = Liar::new(&host);
    let directory = other.lookup(ROOT, "d").unwrap();
    let mut driver = Driver::mounted(&host);
    assert_eq!(driver.lookup(ROOT, "d").unwrap().node, directory);
    let message = driver.message(opcode::UNLINK, directory, &[b"f\0"]);
    driver.say(&message, 0x8000, 0);
    let number = other.told();
    thread::sleep(Duration::from_millis(30));
    let used: u16 = driver.memory.read_obj(GuestAddress(USED + 2)).unwrap();
    assert_eq!(used, driver.used, "it is answered before the other one has acknowledged");
    other.acknowledge(number);
    let (_, length) = driver.back();
    assert_eq!(driver.answer(0, length), Ok(Vec::new()));
    // The other way round, nobody is waited for.
    other.ask(opcode::MKDIR, directory, &[&0o755u32.to_le_bytes(), &[0; 4], b"new\0"]).unwrap();
    assert_eq!(host.guests().values().filter(|guest| !guest.is_told).count(), 1);
}

#[test]
fn what_a_guest_held_goes_with_its_mount_and_with_its_machine() {
    let (_all, _shared, host) = shared();
    let mut driver = Driver::new(&host);
    assert_eq!(driver.lookup(ROOT, "d").unwrap_err(), Errno::NOTCONN);
    driver.mount();
    let holds = |directory| host.guests().keys().any(|guest| host.export.nodes().holds(*guest, directory));
    let directory = driver.lookup(ROOT, "d").unwrap().node;
    let file = driver.lookup(directory, "f").unwrap().node;
    driver.open(file, libc::O_RDONLY);
    assert!(holds(directory) && host.handles.count() == 1);
    assert_eq!(driver.ask(opcode::DESTROY, 0, &[]), Ok(Vec::new()));
    assert!(host.guests().is_empty() && host.handles.count() == 0);
    assert_eq!(driver.lookup(ROOT, "d").unwrap_err(), Errno::NOTCONN);

    // A machine that was reset says nothing before it mounts the share again.
    driver.mount();
    driver.lookup(ROOT, "d").unwrap();
    driver.mount();
    assert!(!holds(directory) && host.guests().len() == 1);
    driver.lookup(ROOT, "d").unwrap();
    drop(driver);
    until("its monitor has gone, and it has not", || host.guests().is_empty());
    assert_eq!(host.export.nodes().count(), 1);
}

/// A queue that a machine takes back gets no answer later, and one that is mounted anew has the old one's numbers.
#[test]
fn nobody_waits_for_a_lock_when_the_mount_or_the_machine_ends() {
    let (_all, _shared, host) = shared();
    for is_stopped in [false, true] {
        let mut driver = Driver::mounted(&host);
        wait_for_a_lock(&mut driver);
        if is_stopped {
            driver.monitor.get_vring_base(QUEUE).unwrap();
        } else {
            let message = driver.message(opcode::DESTROY, 0, &[]);
            driver.say(&message, 0x100, 0);
        }
        let (head, length) = driver.back();
        assert_eq!((head, driver.answer(4, length)), (4, Err(Errno::INTR)));
    }
}

/// Locks a file, waits for the same lock through another handle at place 4, and asks for something else in the meantime. Returns the file,
/// the handle that has the lock, and the request that waits.
fn wait_for_a_lock(driver: &mut Driver) -> (u64, u64, Vec<u8>) {
    let directory = driver.lookup(ROOT, "d").unwrap().node;
    let file = driver.lookup(directory, "f").unwrap().node;
    let [one, two] = [(), ()].map(|()| driver.open(file, libc::O_RDWR));
    driver.ask(opcode::SETLK, file, &[lock(one, 1, libc::F_WRLCK).as_bytes()]).unwrap();
    let waits = driver.message(opcode::SETLKW, file, &[lock(two, 2, libc::F_WRLCK).as_bytes()]);
    driver.say(&waits, 0x100, 4);
    driver.lookup(directory, "f").unwrap();
    (file, one, waits)
}

/// A flock(2) lock.
fn lock(fh: u64, owner: u64, kind: i32) -> LkIn {
    let lock = FileLock { start: 0, end: i64::MAX as u64, kind: kind as u32, pid: 1 };
    LkIn { fh, owner, lock, flags: LK_FLOCK, padding: 0 }
}

/// A lock that is waited for holds up nobody, and another request under its number comes back unanswered.
#[test]
fn a_number_means_one_request() {
    let (_all, _shared, host) = shared();
    let mut driver = Driver::mounted(&host);
    let (file, one, waits) = wait_for_a_lock(&mut driver);
    driver.say(&waits, 0x100, 8);
    assert_eq!(driver.back(), (8, 0));
    driver.ask(opcode::SETLK, file, &[lock(one, 1, libc::F_UNLCK).as_bytes()]).unwrap();
    let (head, length) = driver.back();
    assert_eq!((head, driver.answer(4, length)), (4, Ok(Vec::new())));
}

/// A driver that offers a place again before it has got it back.
#[test]
fn no_more_is_unanswered_than_queues_have_places() {
    let (_all, _shared, host) = shared();
    let mut other = Liar::new(&host);
    let directory = other.lookup(ROOT, "d").unwrap();
    let mut driver = Driver::mounted(&host);
    driver.lookup(ROOT, "d").unwrap();
    let begun = || {
        let guests = host.guests();
        let guest = guests.values().find(|guest| !guest.is_told).unwrap();
        guest.status(0).requests.get("setattr").copied().unwrap_or_default()
    };
    // Each waits for what the other guest does not acknowledge.
    const MOST: u64 = 5 * 1024;
    for number in 1..=MOST {
        let ask = driver.message(opcode::SETATTR, directory, &[&[0; 88]]);
        driver.say(&ask, 0x100, 0);
        while begun() < number {
            thread::yield_now();
        }
    }
    let ask = driver.message(opcode::SETATTR, directory, &[&[0; 88]]);
    driver.say(&ask, 0x100, 0);
    assert_eq!(driver.back(), (0, 0));
    assert_eq!(begun(), MOST);
}

/// Whatever is in the queue comes back, and what is asked properly afterwards is answered.
#[test]
fn a_driver_that_keeps_to_no_rule_gets_nothing() {
    let (_all, _shared, host) = shared();
    let mut driver = Driver::mounted(&host);
    let lookup = driver.message(opcode::LOOKUP, ROOT, &[b"d\0"]);
    // No room, room for no answer, and for a part of one.
    for (room, written) in [(0, 0), (8, 0), (16, 16), (100, 16)] {
        driver.say(&lookup, room, 0);
        assert_eq!(driver.back(), (0, written), "{room}");
        if written > 0 {
            assert_eq!(driver.answer(0, written), Err(Errno::IO));
        }
    }
    for message in [&b""[..], b"abc", &lookup[..39], &lookup[..41]] {
        driver.say(message, 0x100, 0);
        assert_eq!(driver.back(), (0, 0), "{message:?}");
    }
    // Beyond its memory; so long that it ends beyond it; a cycle; only room; beyond the table.
    let chains: [&[(u64, u32, u16, u16)]; 5] = [
        &[(SIZE, 40, NEXT, 1), (ANSWER, 0x100, WRITE, 0)],
        &[(ASKED, u32::MAX, NEXT, 1), (ANSWER, 0x100, WRITE, 0)],
        &[(ASKED, 40, NEXT, 1), (ASKED, 1, NEXT, 0)],
        &[(ANSWER, 0x100, WRITE, 0)],
        &[(ASKED, 40, NEXT, PLACES), (ANSWER, 0x100, WRITE, 0)],
    ];
    for (number, chain) in chains.into_iter().enumerate() {
        for (place, (at, length, flags, next)) in chain.iter().enumerate() {
            driver.describe(place as u16, *at, *length, *flags, *next);
        }
        driver.offer(0);
        assert_eq!(driver.back(), (0, 0), "chain {number}");
    }
    assert!(driver.lookup(ROOT, "d").is_ok());
    assert_eq!(driver.lookup(ROOT, "../secret").unwrap_err(), Errno::INVAL);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_bytes_break_it(
        messages in prop::collection::vec(
            (0u32..60, any::<u8>(), prop::collection::vec(any::<u8>(), 0..200), 0u32..300), 1..20),
    ) {
        let (_all, _shared, host) = shared();
        let mut driver = Driver::mounted(&host);
        for (opcode, node, body, room) in messages {
            let message = driver.message(opcode, node.into(), &[&body]);
            driver.say(&message, room, 0);
            // Nothing is open, so there is no lock that could be waited for.
            driver.back();
        }
        driver.mount();
        prop_assert!(driver.lookup(ROOT, "d").is_ok());
    }
}
