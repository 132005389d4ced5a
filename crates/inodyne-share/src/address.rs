//! Where a share is: `unix:PATH`, `tcp:IP:PORT`, `vsock:CID:PORT`, `serial:PATH` or `vhost-user:PATH`. Host names are not accepted: a statically
//! linked program cannot resolve them.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr};

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// A machine's CID, the number that its host gives it, and a port: between virtual machines and their host.
    Vsock {
        /// The CID; `libc::VMADDR_CID_ANY` to listen under each that this machine has.
        cid: u32,
        /// Below 1024 only root may listen.
        port: u32,
    },
    /// A serial port of a virtual machine: in the guest a character device, on the host the Unix socket to which the machine connects.
    Serial(PathBuf),
    /// The Unix socket to which a virtual machine monitor connects; its guest mounts the share over virtiofs.
    VhostUser(PathBuf),
}

impl Address {
    /// Whether peers are let in by key, or as machines that are named.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Vsock { .. })
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", at)) => at.parse().map(Self::Tcp).map_err(|_| {
                format!("'{text}' is not an address: tcp:IP:PORT, as tcp:192.0.2.1:7000 or tcp:[2001:db8::1]:7000")
            }),
            Some(("vsock", at)) => vsock(at).ok_or_else(|| {
                format!(
                    "'{text}' is not an address: vsock:CID:PORT, as vsock:2:700 for the host, or vsock:any:700 to listen"
                )
            }),
            Some(("serial", path)) if !path.is_empty() => Ok(Self::Serial(path.into())),
            Some(("vhost-user", path)) if !path.is_empty() => Ok(Self::VhostUser(path.into())),
            _ => Err(format!("'{text}' is not an address: {FORMS}")),
        }
    }
}

const FORMS: &str = "unix:PATH, tcp:IP:PORT, vsock:CID:PORT, serial:PATH and vhost-user:PATH";

fn vsock(at: &str) -> Option<Address> {
    let (cid, port) = at.split_once(':')?;
    let cid = if cid == "any" { libc::VMADDR_CID_ANY } else { cid.parse().ok()? };
    Some(Address::Vsock { cid, port: port.parse().ok()? })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(at) => write!(f, "tcp:{at}"),
            Self::Serial(path) => write!(f, "serial:{}", path.display()),
            Self::VhostUser(path) => write!(f, "vhost-user:{}", path.display()),
            Self::Vsock { cid: libc::VMADDR_CID_ANY, port } => write!(f, "vsock:any:{port}"),
            Self::Vsock { cid, port } => write!(f, "vsock:{cid}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in [
            "unix:/run/share",
            "tcp:192.0.2.1:7000",
            "tcp:[2001:db8::1]:7000",
            "vsock:2:700",
            "vsock:any:700",
            "serial:/dev/vport1p1",
            "vhost-user:/run/vm.sock",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for wrong in
            ["", "unix:", "/run/share", "tcp:", "tcp:10.0.0.1", "tcp:host:7000", "http://x", "serial:", "vhost-user:"]
        {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
        for wrong in ["vsock:", "vsock:2", "vsock:host:700", "vsock:2:", "vsock:2:-1", "vsock:4294967296:1"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
