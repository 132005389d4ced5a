//! Reading frames. What follows a frame in the same packet is kept for the next one.

use std::{io, sync::Arc};

use super::Stream;
use crate::protocol::frame::{self, Kind};

/// Bytes that are asked for at once: several small frames, so that each costs at most one call.
const CHUNK: usize = 64 << 10;

/// Why there is no further frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The other side has ended the connection, or it broke.
    Ended,
    /// Nothing came within the time to wait.
    Silent,
    /// What came is not a frame.
    Malformed,
    /// The other side does not accept this side.
    Denied,
}

/// The reading end of a connection.
pub(crate) struct Inbox {
    stream: Arc<dyn Stream>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The longest payload that is accepted.
    most: usize,
}

impl Inbox {
    pub fn new(stream: Arc<dyn Stream>) -> Self {
        Self { stream, buffer: vec![0; CHUNK].into(), start: 0, end: 0, most: frame::MOST_GREETING }
    }

    /// Accepts frames of every size from now on: the other side is known.
    pub fn trust(&mut self) {
        self.most = frame::MOST;
    }

    /// Waits for the next frame; its payload replaces what is in `payload`.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Result<Kind, Lost> {
        while self.end - self.start < frame::HEADER {
            self.more()?;
        }
        let mut header = [0; frame::HEADER];
        header.copy_from_slice(&self.buffer[self.start..self.start + frame::HEADER]);
        let (kind, length) = frame::parse(header, self.most).map_err(|frame::NoFrame| Lost::Malformed)?;
        self.start += frame::HEADER;
        let here = length.min(self.end - self.start);
        payload.clear();
        payload.extend_from_slice(&self.buffer[self.start..self.start + here]);
        self.start += here;
        payload.resize(length, 0);
        let mut filled = here;
        while filled < length {
            filled += receive(&*self.stream, &mut payload[filled..], true)?;
        }
        Ok(kind)
    }

    fn more(&mut self) -> Result<(), Lost> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.end += receive(&*self.stream, &mut self.buffer[self.end..], self.end > 0)?;
        Ok(())
    }
}

/// Some bytes. Silence in the middle of a frame is the end: nobody could go on reading there.
fn receive(stream: &dyn Stream, buffer: &mut [u8], is_within: bool) -> Result<usize, Lost> {
    match stream.receive(buffer) {
        Ok(0) => Err(Lost::Ended),
        Ok(length) => Ok(length),
        Err(error) if error.kind() == io::ErrorKind::TimedOut && !is_within => Err(Lost::Silent),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Lost::Denied),
        Err(_) => Err(Lost::Ended),
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use proptest::prelude::*;

    use super::*;
    use crate::transport::socket::pair;

    #[test]
    fn silence_is_told_from_the_end() {
        let (ours, theirs) = pair();
        theirs.set_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut inbox = Inbox::new(theirs);
        assert_eq!(inbox.next(&mut Vec::new()), Err(Lost::Silent));
        ours.try_send(&frame::whole(Kind::Ping, b"")).unwrap();
        assert_eq!(inbox.next(&mut Vec::new()), Ok(Kind::Ping));
        ours.try_send(&frame::whole(Kind::Ping, b"longer")[..10]).unwrap();
        ours.close();
        assert_eq!(inbox.next(&mut Vec::new()), Err(Lost::Ended));
    }

    #[test]
    fn before_the_handshake_frames_are_short() {
        let (ours, theirs) = pair();
        ours.try_send(&frame::header(Kind::Hello, frame::MOST_GREETING + 1)).unwrap();
        assert_eq!(Inbox::new(theirs).next(&mut Vec::new()), Err(Lost::Malformed));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn frames_are_found_wherever_the_stream_is_cut(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 1..20),
            cuts in prop::collection::vec(1usize..4000, 1..40),
        ) {
            let (ours, theirs) = pair();
            let bytes: Vec<u8> = payloads.iter().flat_map(|payload| frame::whole(Kind::Request, payload)).collect();
            let sender = thread::spawn(move || {
                let (mut rest, mut cuts) = (&bytes[..], cuts.into_iter().cycle());
                while !rest.is_empty() {
                    let length = cuts.next().unwrap_or(1).min(rest.len());
                    match ours.try_send(&rest[..length]) {
                        Ok(sent) => rest = &rest[sent..],
                        Err(_) => drop(ours.wait_sendable(Duration::from_secs(9))),
                    }
                }
            });
            let mut inbox = Inbox::new(theirs);
            inbox.trust();
            let mut found = Vec::new();
            for payload in payloads {
                prop_assert_eq!(inbox.next(&mut found), Ok(Kind::Request));
                prop_assert_eq!(&found, &payload);
            }
            sender.join().unwrap();
        }
    }
}
