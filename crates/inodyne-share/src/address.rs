//! Where a share is: `unix:PATH` or `tcp:IP:PORT`. Other transports have their words here already, so that a user learns what is not
//! there yet. Hosts have no names here: a program that is linked statically cannot ask for their addresses.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr};

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// An IP address and a port.
    Tcp(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", at)) => at.parse().map(Self::Tcp).map_err(|_| {
                format!("'{text}' is no address: tcp:IP:PORT, as tcp:192.0.2.1:7000 or tcp:[2001:db8::1]:7000")
            }),
            Some(("vsock" | "serial" | "vhost-user", _)) => {
                Err(format!("'{text}': of the transports only unix:PATH and tcp:IP:PORT are there yet"))
            }
            _ => Err(format!("'{text}' is no address: unix:PATH or tcp:IP:PORT")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(at) => write!(f, "tcp:{at}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in ["unix:/run/share", "tcp:192.0.2.1:7000", "tcp:[2001:db8::1]:7000"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for wrong in ["", "unix:", "/run/share", "tcp:", "tcp:10.0.0.1", "tcp:host:7000", "vsock:2:7000", "http://x"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
