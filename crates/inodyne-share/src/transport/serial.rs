//! Connections over a serial port of a virtual machine, one after the other. In the guest the port is a character device, on the host a
//! Unix socket to which the virtual machine connects (QEMU's `-chardev socket`).
//!
//! Neither end of the port notices when the other one is opened or closed, and what was on its way to a mounter that is gone
//! is still there for the next. So each connection has a number (`packet`):
//!
//! ```text
//!   guest                          host
//!     | -- open 7 ------------------> |  again and again, until
//!     | <----------------- accept 7 - |
//!     | <-- data 7 -- data 7 -- ... ->|
//!     | -- open 9 ------------------> |  the mounter was killed: 7 is over
//!     | -- data 5 ------------------> |
//!     | <------------------ close 5 - |  the host was restarted
//! ```

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{FileTypeExt, OpenOptionsExt},
            net::UnixStream,
        },
    },
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock},
    io::Errno,
    net::{SendFlags, send},
    termios::{OptionalActions, isatty, tcgetattr, tcsetattr},
};

use super::{
    Stream,
    packet::{self, Finder, Kind, Packet},
};

/// How often a guest asks for a connection.
const AGAIN: Duration = Duration::from_millis(200);

/// Bytes that are read at once.
const CHUNK: usize = 32 << 10;

/// A port.
pub(crate) struct Port {
    port: OwnedFd,
    is_socket: bool,
    incoming: Mutex<Incoming>,
    outgoing: Mutex<Outgoing>,
}

struct Incoming {
    finder: Finder,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// A connection that was asked for while there was another one.
    next: Option<u64>,
}

/// What is not sent yet of packets that were begun.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

/// What came, or that nothing did.
enum Came {
    Packet(Packet),
    /// Nobody is at the other end.
    End,
    /// Not in time.
    Nothing,
}

impl Port {
    /// The host's end, for a virtual machine that has connected.
    pub fn of(socket: UnixStream) -> io::Result<Arc<Self>> {
        Self::new(socket.into(), true)
    }

    /// The guest's end: the device; or, where there is no device in between, the host's socket.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        if fs::metadata(path)?.file_type().is_socket() {
            return Self::new(UnixStream::connect(path)?.into(), true);
        }
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
        let device: File = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        // Two mounters would take each other's packets.
        flock(&device, FlockOperation::NonBlockingLockExclusive)?;
        if isatty(&device) {
            let mut settings = tcgetattr(&device)?;
            settings.make_raw();
            tcsetattr(&device, OptionalActions::Now, &settings)?;
        }
        Self::new(device.into(), false)
    }

    fn new(port: OwnedFd, is_socket: bool) -> io::Result<Arc<Self>> {
        fcntl_setfl(&port, fcntl_getfl(&port)? | OFlags::NONBLOCK)?;
        let incoming =
            Incoming { finder: Finder::default(), bytes: vec![0; CHUNK].into(), start: 0, end: 0, next: None };
        Ok(Arc::new(Self { port, is_socket, incoming: Mutex::new(incoming), outgoing: Mutex::default() }))
    }

    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a guest that opens a connection; `None` when the virtual machine is gone.
    pub fn accept(self: &Arc<Self>) -> io::Result<Option<Arc<dyn Stream>>> {
        let mut incoming = self.incoming();
        let number = match incoming.next.take() {
            Some(number) => number,
            None => loop {
                match self.next(&mut incoming, None, None)? {
                    Came::Packet(Packet { kind: Kind::Open, connection, .. }) => break connection,
                    Came::Packet(Packet { kind: Kind::Data, connection, .. }) => self.say(Kind::Close, connection),
                    Came::Packet(_) | Came::Nothing => {}
                    Came::End => return Ok(None),
                }
            },
        };
        drop(incoming);
        self.say(Kind::Accept, number);
        Ok(Some(Arc::new(Connection::new(self.clone(), number, true)?)))
    }

    /// Opens a connection, within that time.
    pub fn connect(self: &Arc<Self>, timeout: Duration) -> io::Result<Arc<dyn Stream>> {
        let until = Instant::now() + timeout;
        let number = RandomState::new().hash_one(until);
        loop {
            if Instant::now() >= until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no host of a share answers there"));
            }
            self.say(Kind::Open, number);
            let asked = Instant::now();
            loop {
                let mut incoming = self.incoming();
                match self.next(&mut incoming, Some(asked + AGAIN), None)? {
                    Came::Packet(Packet { kind: Kind::Accept, connection, .. }) if connection == number => {
                        drop(incoming);
                        return Ok(Arc::new(Connection::new(self.clone(), number, false)?));
                    }
                    Came::Packet(_) => {}
                    Came::Nothing => break,
                    // A socket does not come back. A port does, when the host is there.
                    Came::End if self.is_socket => return Err(io::ErrorKind::ConnectionReset.into()),
                    Came::End => {
                        thread::sleep(AGAIN);
                        break;
                    }
                }
            }
        }
    }

    /// The next packet, until a time, or until `wake` is readable.
    fn next(&self, incoming: &mut Incoming, until: Option<Instant>, wake: Option<&OwnedFd>) -> io::Result<Came> {
        loop {
            let mut bytes = &incoming.bytes[incoming.start..incoming.end];
            let found = incoming.finder.next(&mut bytes);
            incoming.start = incoming.end - bytes.len();
            if let Some(packet) = found {
                return Ok(Came::Packet(packet));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let mut events = vec![PollFd::new(&self.port, PollFlags::IN)];
            events.extend(wake.map(|wake| PollFd::new(wake, PollFlags::IN)));
            match poll(&mut events, left.map(timespec).as_ref()) {
                Ok(0) => return Ok(Came::Nothing),
                Ok(_) if events.get(1).is_some_and(|wake| !wake.revents().is_empty()) => return Ok(Came::End),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            match rustix::io::read(&self.port, &mut *incoming.bytes) {
                Ok(0) => return Ok(Came::End),
                Ok(length) => (incoming.start, incoming.end) = (0, length),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Sends a packet without data, after what is not sent yet. One that cannot be sent is not missed: what it says is found out some other way.
    fn say(&self, kind: Kind, connection: u64) {
        let mut outgoing = self.outgoing();
        if matches!(self.flush(&mut outgoing), Ok(true)) {
            packet::write(&mut outgoing.bytes, kind, connection, &[]);
            let _ = self.flush(&mut outgoing);
        }
    }

    /// Sends what it can. Returns whether that is all.
    fn flush(&self, outgoing: &mut Outgoing) -> io::Result<bool> {
        while outgoing.sent < outgoing.bytes.len() {
            let bytes = &outgoing.bytes[outgoing.sent..];
            let sent = if self.is_socket {
                send(&self.port, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            } else {
                rustix::io::write(&self.port, bytes)
            };
            match sent {
                Ok(length) => outgoing.sent += length,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        outgoing.bytes.clear();
        outgoing.sent = 0;
        Ok(true)
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

/// One connection over a port.
struct Connection {
    /// Until it is closed, so that the port can be opened again in the guest, where only one may have it.
    port: Mutex<Option<Arc<Port>>>,
    number: u64,
    is_host: bool,
    /// What was not taken yet of the last packet.
    data: Mutex<Vec<u8>>,
    timeout: Mutex<Option<Duration>>,
    /// Readable when it is closed.
    closed: OwnedFd,
}

impl Connection {
    fn new(port: Arc<Port>, number: u64, is_host: bool) -> io::Result<Self> {
        Ok(Self {
            port: Mutex::new(Some(port)),
            number,
            is_host,
            data: Mutex::default(),
            timeout: Mutex::default(),
            closed: eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }

    fn port(&self) -> MutexGuard<'_, Option<Arc<Port>>> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The port, while it is open.
    fn open(&self) -> io::Result<Arc<Port>> {
        self.port().clone().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl Stream for Connection {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let timeout = *self.timeout.lock().unwrap_or_else(PoisonError::into_inner);
        let until = timeout.map(|timeout| Instant::now() + timeout);
        while data.is_empty() {
            let Ok(port) = self.open() else { return Ok(0) };
            let mut incoming = port.incoming();
            // What comes now is for the next connection.
            if incoming.next.is_some() {
                return Ok(0);
            }
            let packet = match port.next(&mut incoming, until, Some(&self.closed))? {
                Came::Packet(packet) => packet,
                Came::End => return Ok(0),
                Came::Nothing => return Err(io::ErrorKind::TimedOut.into()),
            };
            match packet.kind {
                Kind::Data if packet.connection == self.number => *data = packet.data,
                Kind::Data if self.is_host => port.say(Kind::Close, packet.connection),
                Kind::Close if packet.connection == self.number => return Ok(0),
                // The guest has not heard yet that the connection is open.
                Kind::Open if self.is_host && packet.connection == self.number => {
                    port.say(Kind::Accept, self.number);
                }
                Kind::Open if self.is_host => {
                    incoming.next = Some(packet.connection);
                    return Ok(0);
                }
                _ => {}
            }
        }
        let length = buffer.len().min(data.len());
        buffer[..length].copy_from_slice(&data[..length]);
        data.drain(..length);
        Ok(length)
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
        Ok(())
    }

    fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let port = self.open()?;
        let mut outgoing = port.outgoing();
        if !port.flush(&mut outgoing)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = bytes.len().min(packet::MOST_DATA);
        packet::write(&mut outgoing.bytes, Kind::Data, self.number, &bytes[..length]);
        port.flush(&mut outgoing)?;
        Ok(length)
    }

    fn flush(&self) -> io::Result<bool> {
        let port = self.open()?;
        port.flush(&mut port.outgoing())
    }

    fn wait_sendable(&self, timeout: Duration) -> io::Result<bool> {
        let port = self.open()?;
        match poll(&mut [PollFd::new(&port.port, PollFlags::OUT)], Some(&timespec(timeout))) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn close(&self) {
        let port = self.port().take();
        if let Some(port) = port {
            port.say(Kind::Close, self.number);
            let _ = rustix::io::write(&self.closed, &1u64.to_ne_bytes());
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::frame::{self, Kind as FrameKind},
        transport::{Inbox, Lost, Outbox, exchange_much},
    };

    const TIMEOUT: Duration = Duration::from_secs(20);

    /// Both ends of a port.
    fn port() -> (Arc<Port>, Arc<Port>) {
        let (guest, host) = UnixStream::pair().unwrap();
        (Port::of(guest).unwrap(), Port::of(host).unwrap())
    }

    fn connected(guest: &Arc<Port>, host: &Arc<Port>) -> (Arc<dyn Stream>, Arc<dyn Stream>) {
        let accepting = thread::spawn({
            let host = host.clone();
            move || host.accept().unwrap().unwrap()
        });
        let guest = guest.connect(TIMEOUT).unwrap();
        let host = accepting.join().unwrap();
        [&guest, &host].into_iter().for_each(|stream| stream.set_timeout(Some(TIMEOUT)).unwrap());
        (guest, host)
    }

    #[test]
    fn much_goes_in_both_directions_at_once() {
        let (guest, host) = port();
        let (guest, host) = connected(&guest, &host);
        exchange_much(guest, host, 100);
    }

    #[test]
    fn the_next_mounter_reads_nothing_of_the_one_that_was_killed() {
        let (guest_port, host_port) = port();
        let (first, old) = connected(&guest_port, &host_port);
        // Both were in the middle of something, and neither could say that it ends.
        let outbox = Outbox::new(old.clone());
        outbox.send(&frame::whole(FrameKind::Reply, &[1; 100_000]));
        first.try_send(&frame::whole(FrameKind::Request, &[2; 50_000])[..20_000]).unwrap();
        let ends = thread::spawn({
            let host_port = host_port.clone();
            move || {
                let mut inbox = Inbox::new(old);
                inbox.trust();
                assert_eq!(inbox.next(&mut Vec::new()), Err(Lost::Ended));
                drop((inbox, outbox));
                host_port.accept().unwrap().unwrap()
            }
        });
        let second = guest_port.connect(TIMEOUT).unwrap();
        let new = ends.join().unwrap();
        new.set_timeout(Some(TIMEOUT)).unwrap();
        let mut inbox = Inbox::new(new.clone());
        Outbox::new(second.clone()).send(&frame::whole(FrameKind::Hello, b"second"));
        let mut payload = Vec::new();
        assert_eq!(inbox.next(&mut payload), Ok(FrameKind::Hello));
        assert_eq!(payload, b"second");
        Outbox::new(new).send(&frame::whole(FrameKind::Welcome, b"you too"));
        second.set_timeout(Some(TIMEOUT)).unwrap();
        assert_eq!(Inbox::new(second).next(&mut payload), Ok(FrameKind::Welcome));
        assert_eq!(payload, b"you too");
        first.close();
    }

    #[test]
    fn a_host_that_does_not_know_a_connection_ends_it() {
        let (guest_port, host_port) = port();
        let (guest, host) = connected(&guest_port, &host_port);
        std::mem::forget(host);
        let accepting = thread::spawn(move || host_port.accept());
        guest.try_send(b"to a host that was started anew").unwrap();
        assert_eq!(guest.receive(&mut [0; 9]).unwrap(), 0);
        guest.close();
        drop((guest, guest_port));
        assert!(accepting.join().unwrap().unwrap().is_none(), "the machine is gone");
    }

    #[test]
    fn silence_and_the_own_end_are_noticed() {
        let (guest_port, host_port) = port();
        let (guest, host) = connected(&guest_port, &host_port);
        guest.set_timeout(Some(Duration::from_millis(10))).unwrap();
        assert_eq!(guest.receive(&mut [0; 9]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| host.receive(&mut [0; 9]));
            thread::sleep(Duration::from_millis(20));
            host.close();
            assert_eq!(waiting.join().unwrap().unwrap(), 0);
        });
        assert_eq!(guest.receive(&mut [0; 9]).unwrap(), 0);
        assert_eq!(guest_port.connect(Duration::from_millis(300)).err().unwrap().kind(), io::ErrorKind::TimedOut);
    }
}
