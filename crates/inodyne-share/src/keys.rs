//! Keys of hosts and guests: Ed25519 key pairs, as text and in files.
//!
//! A public key is written as 64 hexadecimal digits. A private key is kept in a file that nobody but its owner may read, as PKCS #8.
//! There are no certificates: whoever is to be let in, or connected to, is named by their key.

use std::{
    fmt, fs, io,
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    str::FromStr,
};

use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair},
};
use rustix::process::geteuid;

use crate::ShareError;

/// What precedes an Ed25519 key in its `SubjectPublicKeyInfo` (RFC 8410): two sequences, the algorithm's number, and
/// the length of what follows.
const PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Longer files are not key files.
const MOST_BYTES: u64 = 1 << 20;

/// What one side is known to the other by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// As `SubjectPublicKeyInfo`.
    pub(crate) fn to_der(self) -> Vec<u8> {
        [&PREFIX[..], &self.0].concat()
    }

    /// From such bytes; `None` where they are something else.
    pub(crate) fn from_der(der: &[u8]) -> Option<Self> {
        Some(Self(der.strip_prefix(&PREFIX)?.try_into().ok()?))
    }

    /// All keys in a file, one per line; empty lines and those that begin with `#` are ignored.
    ///
    /// # Errors
    /// The file cannot be read, somebody other than root and this process's user may change it, or a line is not a key.
    pub fn all_in(path: &Path) -> Result<Vec<Self>, ShareError> {
        let failed = |error: io::Error| ShareError::key_file(path, error);
        let file = fs::File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let refused = |problem| Err(ShareError::key_file(path, problem));
        if about.mode() & 0o022 != 0 {
            return refused("others may change it: chmod go-w");
        }
        if ![0, geteuid().as_raw()].contains(&about.uid()) {
            return refused("another user owns it, and may change it: chown it to root or whoever serves");
        }
        let text = read(file).map_err(failed)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| line.parse().map_err(|problem: String| ShareError::key_file(path, problem))).collect()
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        from_hex(text)
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| format!("'{text}' is not a public key: 64 hexadecimal digits, as `share key` prints them"))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What nobody else may know.
#[derive(Clone)]
pub struct PrivateKey(Vec<u8>);

impl PrivateKey {
    /// Makes a new key in a new file, which only its owner may read; nothing is overwritten.
    ///
    /// # Errors
    /// The file is there already, or cannot be written.
    pub fn make(path: &Path) -> Result<Self, ShareError> {
        let failed = |error: io::Error| ShareError::key_file(path, error);
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|_| ShareError::lacking("this machine gives no random numbers"))?;
        let key = Self(key.as_ref().to_vec());
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        writeln!(file, "# The private key of one side of an inodyne share.\n{}", to_hex(&key.0)).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(key)
    }

    /// From a file that [`PrivateKey::make`] has made.
    ///
    /// # Errors
    /// It cannot be read, is not such a file, or somebody other than its owner may read or change it.
    pub fn load(path: &Path) -> Result<Self, ShareError> {
        let failed = |error: io::Error| ShareError::key_file(path, error);
        let file = fs::File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
            return Err(ShareError::key_file(path, "others may read or change it: chmod 600"));
        }
        let text = read(file).map_err(failed)?;
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let key = lines.next().and_then(from_hex).filter(|key| Ed25519KeyPair::from_pkcs8(key).is_ok());
        key.map(Self).ok_or_else(|| ShareError::key_file(path, "it holds no private key: `share key` makes one"))
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        // It was checked when it was loaded, or made here.
        let pair = Ed25519KeyPair::from_pkcs8(&self.0).ok();
        let bytes = pair.and_then(|pair| pair.public_key().as_ref().try_into().ok());
        PublicKey(bytes.unwrap_or_default())
    }

    /// As PKCS #8.
    pub(crate) fn to_der(&self) -> Vec<u8> {
        self.0.clone()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "private key of {}", self.public())
    }
}

/// Who a host is, and whom it serves.
#[derive(Clone, Debug)]
pub struct HostKeys {
    /// Its own key.
    pub own: PrivateKey,
    /// Those of its guests.
    pub allowed: Vec<PublicKey>,
}

/// Whom a host lets in, where its address does not say so.
#[derive(Clone, Debug, Default)]
pub struct Admitted {
    /// Those who know a key, and to whom the host shows its own.
    pub keys: Option<HostKeys>,
    /// Virtual machines whose root needs no key, by number; over vsock.
    pub machines: Vec<u32>,
}

/// Who a guest is, and who its host is.
#[derive(Clone, Debug)]
pub struct GuestKeys {
    /// Its own key.
    pub own: PrivateKey,
    /// That of the host.
    pub host: PublicKey,
}

/// A text of a sensible length.
fn read(file: fs::File) -> io::Result<String> {
    let mut text = String::new();
    if io::Read::read_to_string(&mut io::Read::take(file, MOST_BYTES + 1), &mut text)? as u64 > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| if let [high, low] = pair { Some(digit(high)? << 4 | digit(low)?) } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_kept_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let made = PrivateKey::make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(PrivateKey::load(&path).unwrap().public(), made.public());
        assert!(PrivateKey::make(&path).is_err(), "nothing is overwritten");
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(PrivateKey::load(&path).unwrap_err().to_string().contains("chmod 600"));
        }
        let shown = format!("{made:?}");
        assert!(shown.contains(&made.public().to_string()) && !shown.contains(&to_hex(&made.0)));
    }

    #[test]
    fn lists_of_keys_have_comments() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("allowed");
        let key = PublicKey([7; 32]);
        fs::write(&path, format!("# the build machine\n\n  {key}\n{key}\n")).unwrap();
        assert_eq!(PublicKey::all_in(&path).unwrap(), [key, key]);
        fs::write(&path, "0123").unwrap();
        assert!(PublicKey::all_in(&path).unwrap_err().to_string().contains("'0123' is not a public key"));
    }

    /// Whoever may change it lets in whom they like.
    #[test]
    fn lists_that_others_may_change_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("allowed");
        let key = PublicKey([7; 32]);
        fs::write(&path, format!("{key}\n")).unwrap();
        for mode in [0o664, 0o646, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = PublicKey::all_in(&path).unwrap_err().to_string();
            assert!(refused.contains("chmod go-w"), "{mode:o}: {refused}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(PublicKey::all_in(&path).unwrap(), [key]);
        // Only root can give it away.
        if std::os::unix::fs::chown(&path, Some(7), None).is_ok() {
            let refused = PublicKey::all_in(&path).unwrap_err().to_string();
            assert!(refused.contains("another user owns it"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn a_public_key_is_read_as_it_is_written(bytes: [u8; 32]) {
            let key = PublicKey(bytes);
            prop_assert_eq!(key.to_string().parse(), Ok(key));
            prop_assert_eq!(PublicKey::from_der(&key.to_der()), Some(key));
        }

        #[test]
        fn nothing_else_is_one(text in ".{0,70}", der in prop::collection::vec(any::<u8>(), 0..50)) {
            if let Ok(key) = text.parse::<PublicKey>() {
                prop_assert_eq!(key.to_string(), text.to_lowercase());
            }
            prop_assert!(PublicKey::from_der(&der).is_none_or(|key| key.to_der() == der));
        }

        #[test]
        fn no_file_breaks_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("key");
            fs::write(&path, &bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            prop_assert!(PrivateKey::load(&path).is_err());
        }
    }
}
