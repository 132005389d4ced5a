//! TLS 1.3 over a socket, both sides known to each other by raw public keys (RFC 7250): nobody else reads or changes what goes over
//! the network, and nobody else is answered.
//!
//! The library is a state machine without input and output of its own. It is locked only while it computes: whoever receives
//! waits for the socket without the lock, and whoever sends leaves in it what the socket does not take at once, to be
//! flushed later.

use std::{
    io::{self, Read, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, DistinguishedName, Error,
    ServerConfig, ServerConnection, SignatureScheme,
    client::{
        AlwaysResolvesClientRawPublicKeys, Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::{
        AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version::TLS13,
};

use super::{Stream, socket::Socket};
use crate::keys::{GuestKeys, HostKeys, PrivateKey, PublicKey};

/// Bytes that are asked of the socket at once: the longest record, and then some.
const CHUNK: usize = 20 << 10;

/// A connection after its handshake.
pub(super) struct Tls {
    socket: Socket,
    state: Mutex<Connection>,
    incoming: Mutex<Incoming>,
    peer: PublicKey,
}

/// What came from the socket and is not taken by the state machine yet.
struct Incoming {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

/// What a host needs for the handshakes of all its guests.
#[derive(Clone)]
pub(super) struct HostSide(Arc<ServerConfig>);

impl HostSide {
    pub fn new(keys: &HostKeys) -> Result<Self, Error> {
        let verifier = Arc::new(Known::new(keys.allowed.clone()));
        let resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified(&keys.own)?));
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13])?;
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver);
        // Each connection proves anew who is there.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config)))
    }

    /// The host's side of the handshake, within that time.
    pub fn accept(&self, socket: Socket, timeout: Duration) -> io::Result<Tls> {
        let state = ServerConnection::new(self.0.clone()).map_err(io::Error::other)?;
        Tls::shake_hands(socket, state.into(), timeout)
    }
}

/// The guest's side of the handshake, within that time.
pub(super) fn connect(socket: Socket, keys: &GuestKeys, timeout: Duration) -> io::Result<Tls> {
    let make = || {
        let verifier = Arc::new(Known::new(vec![keys.host]));
        let resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(certified(&keys.own)?));
        let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13])?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = builder.with_client_cert_resolver(resolver);
        config.resumption = Resumption::disabled();
        // The host is known by its key; it has no name, and is told none.
        config.enable_sni = false;
        let name = ServerName::try_from("share.invalid").map_err(|_| Error::General("no name".into()))?;
        ClientConnection::new(Arc::new(config), name)
    };
    Tls::shake_hands(socket, make().map_err(io::Error::other)?.into(), timeout)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A key as the library wants it.
fn certified(key: &PrivateKey) -> Result<Arc<CertifiedKey>, Error> {
    let signing = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(key.to_der()))?;
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(key.public().to_der())], signing)))
}

impl Tls {
    fn shake_hands(socket: Socket, mut state: Connection, timeout: Duration) -> io::Result<Self> {
        let until = Instant::now() + timeout;
        let mut incoming = Incoming { bytes: vec![0; CHUNK].into(), start: 0, end: 0 };
        while state.is_handshaking() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !flush(&socket, &mut state)? {
                socket.wait_sendable(left)?;
            } else if state.is_handshaking() {
                socket.set_timeout(Some(left))?;
                incoming.fill(&socket)?;
                if let Err(error) = incoming.feed(&mut state) {
                    // The other side learns why.
                    let _ = flush(&socket, &mut state);
                    return Err(error);
                }
            }
        }
        while !flush(&socket, &mut state)? {
            if !socket.wait_sendable(until.saturating_duration_since(Instant::now()))? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let key = state.peer_certificates().and_then(|keys| PublicKey::from_der(keys.first()?));
        let peer = key.ok_or(io::ErrorKind::PermissionDenied)?;
        socket.set_timeout(None)?;
        Ok(Self { socket, state: Mutex::new(state), incoming: Mutex::new(incoming), peer })
    }

    fn state(&self) -> MutexGuard<'_, Connection> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream for Tls {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            {
                let mut state = self.state();
                match state.reader().read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                }
                if incoming.start < incoming.end {
                    let fed = incoming.feed(&mut state);
                    // What the protocol itself has to say goes with what is sent next, if it cannot be sent now.
                    let flushed = flush(&self.socket, &mut state);
                    fed.and(flushed)?;
                    continue;
                }
            }
            incoming.fill(&self.socket)?;
        }
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_timeout(timeout)
    }

    fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        if !flush(&self.socket, &mut state)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = state.writer().write(bytes)?;
        flush(&self.socket, &mut state)?;
        Ok(taken)
    }

    fn flush(&self) -> io::Result<bool> {
        flush(&self.socket, &mut self.state())
    }

    fn wait_sendable(&self, timeout: Duration) -> io::Result<bool> {
        self.socket.wait_sendable(timeout)
    }

    fn close(&self) {
        let mut state = self.state();
        state.send_close_notify();
        let _ = flush(&self.socket, &mut state);
        self.socket.close();
    }

    fn peer(&self) -> Option<PublicKey> {
        Some(self.peer)
    }
}

impl Incoming {
    /// Waits for bytes of the socket.
    fn fill(&mut self, socket: &Socket) -> io::Result<()> {
        (self.start, self.end) = (0, socket.receive(&mut self.bytes)?);
        // Unless the other side has said that it ends, the stream was cut off.
        if self.end == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Gives the state machine as much as it takes.
    fn feed(&mut self, state: &mut Connection) -> io::Result<()> {
        let mut rest = &self.bytes[self.start..self.end];
        while !rest.is_empty() {
            let before = rest.len();
            state.read_tls(&mut rest)?;
            self.start += before - rest.len();
            let told = state.process_new_packets().map_err(|error| match error {
                Error::AlertReceived(_) | Error::InvalidCertificate(_) => {
                    io::Error::new(io::ErrorKind::PermissionDenied, error)
                }
                error => io::Error::new(io::ErrorKind::InvalidData, error),
            })?;
            if told.plaintext_bytes_to_read() > 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Sends what the state machine has to say. Returns whether all of it was sent.
fn flush(socket: &Socket, state: &mut Connection) -> io::Result<bool> {
    while state.wants_write() {
        match state.write_tls(&mut Sink(socket)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A socket as something to write to.
struct Sink<'a>(&'a Socket);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lets in those who have one of these keys, and prove it.
#[derive(Debug)]
struct Known {
    keys: Vec<PublicKey>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Known {
    fn new(keys: Vec<PublicKey>) -> Self {
        Self { keys, algorithms: ring::default_provider().signature_verification_algorithms }
    }

    fn check(&self, key: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Error> {
        let is_known = PublicKey::from_der(key).is_some_and(|key| self.keys.contains(&key));
        let refused = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
        if is_known && others.is_empty() { Ok(()) } else { Err(refused) }
    }
}

/// What both sides' verifiers have in common: TLS 1.3 alone, raw public keys alone, and one kind of these.
macro_rules! by_raw_public_key {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("only TLS 1.3".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            key: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let key = SubjectPublicKeyInfoDer::from(key.as_ref());
            verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ClientCertVerifier for Known {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(key, others).map(|()| ClientCertVerified::assertion())
    }

    by_raw_public_key!();
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(key, others).map(|()| ServerCertVerified::assertion())
    }

    by_raw_public_key!();
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixStream, thread};

    use proptest::prelude::*;

    use super::*;
    use crate::{
        protocol::frame::{self, Kind},
        transport::{Inbox, Lost, exchange_much},
    };

    const TIMEOUT: Duration = Duration::from_secs(5);
    const MESSAGE: &[u8] = b"thirty-two bytes of a message...";

    fn key() -> PrivateKey {
        PrivateKey::make(&tempfile::tempdir().unwrap().path().join("key")).unwrap()
    }

    fn sockets() -> (Socket, Socket) {
        let (one, other) = UnixStream::pair().unwrap();
        (Socket::new(one.into()), Socket::new(other.into()))
    }

    /// Both sides' handshakes: what the host says, what the guest says.
    fn shake(own: PrivateKey, allowed: Vec<PublicKey>, guest: GuestKeys) -> (io::Result<Tls>, io::Result<Tls>) {
        let (ours, theirs) = sockets();
        let side = HostSide::new(&HostKeys { own, allowed }).unwrap();
        let guest = thread::spawn(move || connect(theirs, &guest, TIMEOUT));
        (side.accept(ours, TIMEOUT), guest.join().unwrap())
    }

    fn connected() -> (Arc<Tls>, Arc<Tls>) {
        let (host, guest) = (key(), key());
        let keys = GuestKeys { own: guest.clone(), host: host.public() };
        let (one, other) = shake(host, vec![guest.public()], keys);
        (Arc::new(one.unwrap()), Arc::new(other.unwrap()))
    }

    #[test]
    fn both_know_each_other() {
        let (host, guest) = (key(), key());
        let keys = GuestKeys { own: guest.clone(), host: host.public() };
        let (one, other) = shake(host.clone(), vec![key().public(), guest.public()], keys);
        assert_eq!((one.unwrap().peer(), other.unwrap().peer()), (Some(guest.public()), Some(host.public())));
    }

    #[test]
    fn a_guest_with_another_key_is_told_nothing() {
        let host = key();
        let keys = GuestKeys { own: key(), host: host.public() };
        let (one, other) = shake(host, vec![key().public()], keys);
        assert_eq!(one.err().map(|error| error.kind()), Some(io::ErrorKind::PermissionDenied));
        // In TLS 1.3 it learns so from the first answer.
        let told = other.and_then(|other| other.receive(&mut [0; 9])).map_err(|error| error.kind());
        assert_eq!(told, Err(io::ErrorKind::PermissionDenied));
    }

    #[test]
    fn a_host_with_another_key_is_told_nothing() {
        let guest = key();
        let keys = GuestKeys { own: guest.clone(), host: key().public() };
        let (one, other) = shake(key(), vec![guest.public()], keys);
        assert_eq!(other.err().map(|error| error.kind()), Some(io::ErrorKind::PermissionDenied));
        assert!(one.is_err());
    }

    #[test]
    fn silence_ends_a_handshake_and_so_does_whatever_is_no_tls() {
        let side = HostSide::new(&HostKeys { own: key(), allowed: vec![] }).unwrap();
        let (ours, _theirs) = sockets();
        let silent = side.accept(ours, Duration::from_millis(50)).err().map(|error| error.kind());
        assert_eq!(silent, Some(io::ErrorKind::TimedOut));
        let (ours, theirs) = sockets();
        theirs.try_send(&frame::whole(Kind::Hello, b"{}")).unwrap();
        assert!(side.accept(ours, TIMEOUT).is_err());
    }

    #[test]
    fn much_goes_in_both_directions_at_once() {
        let (one, other) = connected();
        exchange_much(one, other, 200);
    }

    #[test]
    fn a_cut_connection_is_an_end() {
        let (one, other) = connected();
        one.socket.close();
        assert_eq!(Inbox::new(other).next(&mut Vec::new()), Err(Lost::Ended));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn nobody_gets_in_by_luck(bytes in prop::collection::vec(any::<u8>(), 0..600), is_framed: bool) {
            let side = HostSide::new(&HostKeys { own: key(), allowed: vec![key().public()] }).unwrap();
            let (ours, theirs) = sockets();
            // As a record of a handshake, so that more of it is looked at.
            let framed = [&[22, 3, 1, (bytes.len() >> 8) as u8, bytes.len() as u8], &bytes[..]].concat();
            theirs.try_send(if is_framed { &framed } else { &bytes }).ok();
            theirs.close();
            prop_assert!(side.accept(ours, TIMEOUT).is_err());
        }

        #[test]
        fn damage_is_noticed(at in 0usize..60, flip in 1u8..) {
            let (one, other) = connected();
            let mut sealed = Vec::new();
            {
                let mut state = one.state();
                state.writer().write_all(MESSAGE).unwrap();
                while state.wants_write() {
                    state.write_tls(&mut sealed).unwrap();
                }
            }
            let at = at % sealed.len();
            sealed[at] ^= flip;
            one.socket.try_send(&sealed).unwrap();
            one.socket.close();
            let mut buffer = [0; 64];
            match other.receive(&mut buffer) {
                Err(_) => {}
                // The type and the version before an encrypted record mean nothing, and nobody looks at them: what it holds is stated
                // inside it (RFC 8446, 5.1 and 5.2).
                Ok(length) => prop_assert!(at < 3 && buffer[..length] == *MESSAGE),
            }
        }
    }
}
