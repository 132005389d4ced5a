//! Streams that are sockets.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt},
};

use super::Stream;

/// A connected socket.
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// One that is connected already.
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

impl Stream for Socket {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(&self.0, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) => return Ok(length),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, timeout)?)
    }

    fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| send(&self.0, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))?)
    }

    fn wait_sendable(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn close(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

/// A socket that is connected already.
pub(crate) fn socket(socket: OwnedFd) -> Arc<dyn Stream> {
    Arc::new(Socket(socket))
}

/// Both ends of a connection, for tests.
#[cfg(test)]
pub(crate) fn pair() -> (Arc<dyn Stream>, Arc<dyn Stream>) {
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    (socket(one.into()), socket(other.into()))
}

/// For tests: a lot goes in both directions of a connection at once, and all of it arrives.
#[cfg(test)]
pub(super) fn exchange_much(one: Arc<dyn Stream>, other: Arc<dyn Stream>, messages: u32) {
    use std::thread;

    use super::{Inbox, Outbox};
    use crate::protocol::frame::{Kind, whole};

    let work = |stream: Arc<dyn Stream>| {
        let outbox = Outbox::new(stream.clone());
        let mut inbox = Inbox::new(stream);
        inbox.trust();
        let sender = thread::spawn(move || {
            for number in 0..messages {
                outbox.send(&whole(Kind::Reply, &[&number.to_le_bytes()[..], &[7; 50_000]].concat()));
            }
            outbox
        });
        let mut payload = Vec::new();
        for number in 0..messages {
            assert_eq!(inbox.next(&mut payload), Ok(Kind::Reply));
            assert_eq!((&payload[..4], payload.len()), (&number.to_le_bytes()[..], 50_004));
        }
        (sender.join().unwrap(), inbox)
    };
    thread::scope(|scope| {
        let (one, other) = (scope.spawn(|| work(one)), scope.spawn(|| work(other)));
        // Neither is dropped, and thereby closed, before the other has read everything.
        let _both = (one.join().unwrap(), other.join().unwrap());
    });
}
