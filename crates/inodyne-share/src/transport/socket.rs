//! Streams that are sockets.

use std::{
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::FileTypeExt, net::UnixListener, net::UnixStream},
    },
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt},
    process::umask,
};

use super::Stream;
use crate::{Address, ShareError};

/// A connected socket.
struct Socket(OwnedFd);

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

/// Connects to a host.
pub(crate) fn connect(address: &Address) -> Result<Arc<dyn Stream>, ShareError> {
    let Address::Unix(path) = address;
    let stream = UnixStream::connect(path).map_err(|error| ShareError::address("connect to", address, error))?;
    Ok(socket(stream.into()))
}

/// Where guests connect. The socket's name goes with it.
pub(crate) struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens at an address. A socket that a host left there which is no more is replaced; nothing else is. Only the host's own user
    /// may connect, which the socket's permissions see to: whoever is to mount it is let in by changing them.
    pub fn new(address: &Address) -> Result<Self, ShareError> {
        let Address::Unix(path) = address;
        let failed = |error| ShareError::address("listen at", address, error);
        let is_socket = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
        if is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            fs::remove_file(path).map_err(failed)?;
        }
        // The name must not be there for others even for a moment.
        let before = umask(rustix::fs::Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(path);
        umask(before);
        Ok(Self { listener: listener.map_err(failed)?, path: path.clone() })
    }

    /// The next guest.
    pub fn accept(&self) -> io::Result<Arc<dyn Stream>> {
        let (stream, _) = self.listener.accept()?;
        Ok(socket(stream.into()))
    }

    /// What becomes readable when a guest connects.
    pub fn as_fd(&self) -> impl AsFd + '_ {
        self.listener.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Both ends of a connection, for tests.
#[cfg(test)]
pub(crate) fn pair() -> (Arc<dyn Stream>, Arc<dyn Stream>) {
    let (one, other) = UnixStream::pair().unwrap();
    (socket(one.into()), socket(other.into()))
}
