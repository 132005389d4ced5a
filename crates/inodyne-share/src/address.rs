//! Where a share is: `unix:PATH`. Other transports have their words here already, so that a user learns what is not there yet.

use std::{fmt, path::PathBuf, str::FromStr};

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("vsock" | "tcp" | "serial" | "vhost-user", _)) => {
                Err(format!("'{text}': of the transports only unix:PATH is there yet"))
            }
            _ => Err(format!("'{text}' is no address: unix:PATH")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Unix(path) = self;
        write!(f, "unix:{}", path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        assert_eq!("unix:/run/share".parse::<Address>().unwrap().to_string(), "unix:/run/share");
        for wrong in ["", "unix:", "/run/share", "tcp:10.0.0.1:9", "http://x"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
