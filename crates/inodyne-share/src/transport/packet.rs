//! Packets on a serial port, and how they are found again.
//!
//! A port is there before and after those who use it: when a mounter is killed in the middle of a message, the next one writes after that, and
//! is sent what its predecessor was to read. So everything is sent in packets with the number of the connection they belong to, and no
//! byte of a packet is 0, except one before and one after it: whatever was cut off ends there.
//!
//! ```text
//!   0 | stuffed: kind: u8 | connection: u64 | length: u32 | data | 0
//! ```
//!
//! Zeros are taken out by consistent overhead byte stuffing (Cheshire and Baker, 1997): each run of up to 254 bytes without one is
//! preceded by its length, plus one.

/// The most data in a packet. Its bytes go to a virtio port in one write, of at most 32 KiB.
pub(super) const MOST_DATA: usize = 16 << 10;

/// Kind, connection, length.
const HEADER: usize = 13;

/// The longest packet, stuffed.
const MOST: usize = stuffed(HEADER + MOST_DATA);

const fn stuffed(length: usize) -> usize {
    length + length / 254 + 1
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Guest to host: a connection begins. Until it is accepted, this is sent again and again.
    Open = 1,
    /// Host to guest: it is accepted. Any earlier connection is over.
    Accept = 2,
    /// Bytes of the connection.
    Data = 3,
    /// The connection is over, or there is none with this number.
    Close = 4,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        [Self::Open, Self::Accept, Self::Data, Self::Close].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub kind: Kind,
    pub connection: u64,
    pub data: Vec<u8>,
}

/// Appends a packet as it goes over the port.
pub(super) fn write(out: &mut Vec<u8>, kind: Kind, connection: u64, data: &[u8]) {
    out.reserve(MOST + 2);
    let [connection, length] = [&connection.to_le_bytes()[..], &(data.len() as u32).to_le_bytes()[..]];
    out.push(0);
    stuff(out, [&[kind as u8], connection, length, data].into_iter().flatten().copied());
    out.push(0);
}

fn stuff(out: &mut Vec<u8>, bytes: impl Iterator<Item = u8>) {
    let mut run = out.len();
    out.push(0);
    let end = |out: &mut Vec<u8>, run: usize| out[run] = (out.len() - run) as u8;
    for byte in bytes {
        if byte != 0 {
            out.push(byte);
        }
        if byte == 0 || out.len() - run == 255 {
            end(out, run);
            run = out.len();
            out.push(0);
        }
    }
    end(out, run);
}

/// The other way round; `None` for what was cut off within a run.
fn unstuff(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    while let Some((run, rest)) = bytes.split_first() {
        let (plain, rest) = rest.split_at_checked(usize::from(*run).checked_sub(1)?)?;
        out.extend_from_slice(plain);
        if *run < 255 && !rest.is_empty() {
            out.push(0);
        }
        bytes = rest;
    }
    Some(out)
}

fn parse(stuffed: &[u8]) -> Option<Packet> {
    let bytes = unstuff(stuffed)?;
    let (kind, rest) = bytes.split_first()?;
    let (connection, rest) = rest.split_first_chunk()?;
    let (length, data) = rest.split_first_chunk()?;
    let is_whole = u32::from_le_bytes(*length) as usize == data.len();
    let connection = u64::from_le_bytes(*connection);
    is_whole.then_some(Packet { kind: Kind::of(*kind)?, connection, data: data.into() })
}

/// Finds packets in what comes.
#[derive(Default)]
pub(super) struct Finder {
    /// The bytes of the packet that has not ended yet.
    stuffed: Vec<u8>,
    /// It is longer than any packet.
    is_too_long: bool,
}

impl Finder {
    /// Takes bytes up to the end of the next packet, and that packet. What is not a packet is skipped.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<Packet> {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == 0);
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.is_too_long |= self.stuffed.len() + piece.len() > MOST;
            if !self.is_too_long {
                self.stuffed.extend_from_slice(piece);
            }
            *bytes = rest.get(usize::from(end.is_some())..).unwrap_or_default();
            if end.is_some() {
                let packet = if self.is_too_long { None } else { parse(&self.stuffed) };
                self.stuffed.clear();
                self.is_too_long = false;
                if packet.is_some() {
                    return packet;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(finder: &mut Finder, mut bytes: &[u8]) -> Vec<Packet> {
        std::iter::from_fn(|| finder.next(&mut bytes)).collect()
    }

    fn packet() -> impl Strategy<Value = Packet> {
        let kind = prop_oneof![Just(Kind::Open), Just(Kind::Accept), Just(Kind::Data), Just(Kind::Close)];
        // Runs as long as one length can express, and zeros at both ends, are where stuffing goes wrong.
        let data = prop::collection::vec(prop_oneof![Just(0u8), 1..=255u8, Just(7)], 0..600);
        let long = (0usize..1200).prop_map(|length| vec![1; length]);
        (kind, any::<u64>(), prop_oneof![data, long]).prop_map(|(kind, connection, data)| Packet {
            kind,
            connection,
            data,
        })
    }

    fn written(packets: &[Packet]) -> Vec<u8> {
        let mut bytes = Vec::new();
        packets.iter().for_each(|packet| write(&mut bytes, packet.kind, packet.connection, &packet.data));
        bytes
    }

    #[test]
    fn the_longest_packet_is_found_and_goes_in_one_write() {
        for byte in [0, 1, 255] {
            let packet = Packet { kind: Kind::Data, connection: u64::MAX, data: vec![byte; MOST_DATA] };
            let bytes = written(std::slice::from_ref(&packet));
            assert!(bytes.len() <= 32 << 10, "{}", bytes.len());
            assert_eq!(found(&mut Finder::default(), &bytes), [packet]);
        }
    }

    #[test]
    fn what_never_ends_takes_no_memory() {
        let mut finder = Finder::default();
        for _ in 0..100 {
            assert_eq!(found(&mut finder, &[1; MOST]), []);
        }
        assert!(finder.stuffed.capacity() <= 4 * MOST);
        let packet = Packet { kind: Kind::Open, connection: 1, data: Vec::new() };
        assert_eq!(found(&mut finder, &written(std::slice::from_ref(&packet))), [packet]);
    }

    proptest! {
        #[test]
        fn packets_are_found_wherever_the_stream_is_cut(
            packets in prop::collection::vec(packet(), 1..8),
            pieces in prop::collection::vec(1usize..500, 1..20),
        ) {
            let bytes = written(&packets);
            let (mut finder, mut all, mut rest) = (Finder::default(), Vec::new(), &bytes[..]);
            for length in pieces.into_iter().cycle() {
                let (piece, behind) = rest.split_at(length.min(rest.len()));
                all.extend(found(&mut finder, piece));
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(all, packets);
        }

        /// Whatever was left unfinished costs nothing of what comes after it.
        #[test]
        fn behind_a_packet_that_was_cut_off_the_next_one_is_found(
            first in packet(), after in prop::collection::vec(packet(), 1..4), at: prop::sample::Index,
        ) {
            let mut bytes = written(std::slice::from_ref(&first));
            // Without its last byte: with it, the packet would be whole.
            bytes.truncate(at.index(bytes.len() - 1));
            bytes.extend(written(&after));
            let whole = found(&mut Finder::default(), &bytes);
            // A last empty run may be missing; the packet is whole without it.
            prop_assert!(whole == after || whole == [&[first], &after[..]].concat(), "{:?}", whole);
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            found(&mut Finder::default(), &bytes);
        }
    }
}
