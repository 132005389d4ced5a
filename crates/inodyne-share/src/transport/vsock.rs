//! Sockets between virtual machines and their host (AF_VSOCK). Machines have numbers there (CIDs), which only the host gives, and
//! nothing on the way leaves the host; but every machine may connect to the host, and so may anybody with an account on it. So whoever shows
//! no key must come from a machine that the user has named and, as with NFS, from a port that only root may take ([`RESERVED`]).

use std::{io, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, SocketFlags, SocketType, acceptfrom_with,
        addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque},
        bind, connect, listen, socket_with,
    },
};

/// Ports below this are root's.
const RESERVED: u32 = 1024;

/// Guests that wait to be accepted.
const BACKLOG: i32 = 32;

/// A machine and a port, as the kernel wants them.
struct Vsock(libc::sockaddr_vm);

impl Vsock {
    fn new(cid: u32, port: u32) -> Self {
        // SAFETY: it holds only numbers, all of which may be 0.
        let mut address: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
        address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
        (address.svm_cid, address.svm_port) = (cid, port);
        Self(address)
    }
}

// SAFETY: the closure gets a pointer to a whole `sockaddr_vm` and its length, valid during the call.
unsafe impl SocketAddrArg for Vsock {
    unsafe fn with_sockaddr<R>(&self, f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        f((&raw const self.0).cast(), size_of_val(&self.0) as SocketAddrLen)
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::VSOCK, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Listens at a port.
pub(super) fn listener(cid: u32, port: u32) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    bind(&socket, &Vsock::new(cid, port))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// The next one that connects, and the number of its machine if it came from a port that only root may take there.
pub(super) fn accept(listener: &OwnedFd) -> io::Result<(OwnedFd, Option<u32>)> {
    let (socket, peer) = acceptfrom_with(listener, SocketFlags::CLOEXEC)?;
    let is_vsock = |length: SocketAddrLen| length as usize >= size_of::<libc::sockaddr_vm>();
    // SAFETY: the address is read only where it is long enough, wherever it lies.
    let read = |at: *const SocketAddrOpaque, length| unsafe {
        is_vsock(length).then(|| at.cast::<libc::sockaddr_vm>().read_unaligned())
    };
    // SAFETY: `read` reads no more than it is given.
    let peer = peer.and_then(|peer| unsafe { peer.with_sockaddr(read) });
    let is_reserved =
        |peer: &libc::sockaddr_vm| peer.svm_family == libc::AF_VSOCK as libc::sa_family_t && peer.svm_port < RESERVED;
    Ok((socket, peer.filter(is_reserved).map(|peer| peer.svm_cid)))
}

/// Connects, from a port that only root may take if it `is_reserved`. `PermissionDenied` where this process may not take one.
pub(super) fn connected(cid: u32, port: u32, is_reserved: bool) -> io::Result<OwnedFd> {
    // Ports that are in use are skipped, from the highest down.
    for own in (1..RESERVED).rev() {
        let socket = new_socket()?;
        if is_reserved {
            match bind(&socket, &Vsock::new(libc::VMADDR_CID_ANY, own)) {
                Ok(()) => {}
                Err(Errno::ADDRINUSE) => continue,
                Err(errno) => return Err(errno.into()),
            }
        }
        match connect(&socket, &Vsock::new(cid, port)) {
            Ok(()) => return Ok(socket),
            // The kernel or the host still knows a connection from there.
            Err(Errno::ADDRINUSE) if is_reserved => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::ADDRINUSE.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two on the same machine can reach each other depends on a kernel module (vsock_loopback). Where it is there,
    /// they do; where it is not, an error says so at once.
    #[test]
    fn who_connects_is_known_by_machine_and_port() {
        const PORT: u32 = 70_123;
        let Ok(listener) = listener(libc::VMADDR_CID_ANY, PORT) else { return };
        let Ok(_guest) = connected(libc::VMADDR_CID_LOCAL, PORT, false) else { return };
        assert_eq!(accept(&listener).unwrap().1, None);
        if rustix::process::geteuid().is_root() {
            let _guest = connected(libc::VMADDR_CID_LOCAL, PORT, true).unwrap();
            assert_eq!(accept(&listener).unwrap().1, Some(libc::VMADDR_CID_LOCAL));
        }
    }
}
