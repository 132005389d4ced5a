//! Frames: how messages are told apart on a stream.
//!
//! ```text
//! | length of what follows the header: u32 | kind: u8 | zero: 3 bytes | payload |
//! ```
//!
//! Numbers are little-endian. A length beyond the limit, a kind that is not known, or bytes that are not zero where zeros belong
//! end the connection: a stream that has lost its place can only be started again.

use crate::fuse::abi::AttrOut;

/// Bytes before the payload.
pub(crate) const HEADER: usize = 8;

/// The most that a READ or WRITE moves.
pub(crate) const MOST_DATA: usize = 1 << 20;

/// The longest payload: such a READ or WRITE, and what precedes its data.
pub(crate) const MOST: usize = MOST_DATA + (64 << 10);

/// The longest payload before the handshake is done.
pub(crate) const MOST_GREETING: usize = 4 << 10;

/// Bytes after the message in a [`Kind::LastReply`]: directory and position.
pub(crate) const LAST: usize = 16;

/// Bytes after the message in a [`Kind::ChangedReply`]: directory and its attributes.
pub(crate) const CHANGED: usize = 8 + size_of::<AttrOut>();

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Guest to host, first: who is there and what for, as JSON.
    Hello = 1,
    /// Host to guest: the answer to it, as JSON.
    Welcome = 2,
    /// Guest to host: a message of the kernel.
    Request = 3,
    /// Host to guest: an answer for the kernel.
    Reply = 4,
    /// The same, to a READDIR that read the last entry; directory and position follow the message.
    LastReply = 5,
    /// Host to guest: what is no longer valid.
    Invalidate = 6,
    /// Guest to host: the number of such a message that has been applied.
    Acknowledge = 7,
    /// Guest to host: is anybody there?
    Ping = 8,
    /// Host to guest: yes.
    Pong = 9,
    /// Guest to host: what it has kept of what it was told over an earlier connection.
    Resume = 10,
    /// Host to guest: the answer to that: what of it is no longer there.
    Resumed = 11,
    /// Host to guest: what programs on the host have done, for those that watch files.
    Happened = 12,
    /// Host to guest: a reply to a request that changed a directory; the directory's node and attributes follow the message. To one
    /// that renames, it says that a directory was renamed.
    ChangedReply = 13,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        use Kind::*;
        let kinds = [
            Hello,
            Welcome,
            Request,
            Reply,
            LastReply,
            Invalidate,
            Acknowledge,
            Ping,
            Pong,
            Resume,
            Resumed,
            Happened,
            ChangedReply,
        ];
        kinds.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Bytes that are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoFrame;

/// Kind and length of the payload that such a header announces, if that is at most `most`.
pub(crate) fn parse(header: [u8; HEADER], most: usize) -> Result<(Kind, usize), NoFrame> {
    let [a, b, c, d, kind, 0, 0, 0] = header else { return Err(NoFrame) };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let kind = Kind::of(kind).ok_or(NoFrame)?;
    if length > most { Err(NoFrame) } else { Ok((kind, length)) }
}

/// The header of a frame with a payload of this length.
pub(crate) fn header(kind: Kind, length: usize) -> [u8; HEADER] {
    let [a, b, c, d] = (length as u32).to_le_bytes();
    [a, b, c, d, kind as u8, 0, 0, 0]
}

/// Writes the header into the room that was left for it.
pub(crate) fn seal(frame: &mut [u8], kind: Kind) {
    let header = header(kind, frame.len() - HEADER);
    frame[..HEADER].copy_from_slice(&header);
}

/// A whole frame.
pub(crate) fn whole(kind: Kind, payload: &[u8]) -> Vec<u8> {
    [&header(kind, payload.len())[..], payload].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_and_kinds_have_limits() {
        assert_eq!(parse(header(Kind::Request, MOST), MOST), Ok((Kind::Request, MOST)));
        assert_eq!(parse(header(Kind::Request, MOST + 1), MOST), Err(NoFrame));
        assert_eq!(parse([0, 0, 0, 0, 0, 0, 0, 0], MOST), Err(NoFrame));
        assert_eq!(parse([0, 0, 0, 0, 3, 0, 1, 0], MOST), Err(NoFrame));
    }

    proptest! {
        #[test]
        fn a_header_means_one_thing_or_nothing(bytes: [u8; HEADER]) {
            if let Ok((kind, length)) = parse(bytes, MOST) {
                prop_assert_eq!(header(kind, length), bytes);
            }
        }
    }
}
