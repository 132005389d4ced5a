//! Parses what fanotify reports: `struct fanotify_event_metadata` and the records after it (fanotify(7)).

use std::ffi::{CStr, CString};

/// Bytes before the records of an event.
const METADATA: usize = 24;

/// Bytes before what a record is about.
const RECORD: usize = 4;

/// The two records that are used, as `include/uapi/linux/fanotify.h` numbers them.
const FID: u8 = 1;
const DFID_NAME: u8 = 2;

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// What happened; several things to one file may be one event.
    pub mask: u64,
    /// The thread that did it.
    pub thread: i32,
    /// The directory, and the name in it; `.` where it happened to the directory itself.
    pub place: Option<(Handle, CString)>,
    /// The file itself.
    pub target: Option<Handle>,
}

impl Event {
    /// What it happened to. Where a directory itself has changed, rather than a name in it, there is no separate record of it (fanotify(7)).
    pub fn about(&self) -> Option<&Handle> {
        let itself = self.place.as_ref().filter(|(_, name)| name.as_c_str() == c".");
        self.target.as_ref().or(itself.map(|(directory, _)| directory))
    }
}

/// A file as its file system names it: `struct file_handle`, with its header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Handle(pub Vec<u8>);

/// All events in what was read. `None` where it is not what the kernel writes.
pub(super) fn parse(mut bytes: &[u8]) -> Option<Vec<Event>> {
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let (event, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        let records_at = usize::from(u16::from_le_bytes(event.get(6..8)?.try_into().ok()?)).max(METADATA);
        let mut records = event.get(records_at..)?;
        let mut parsed = Event {
            mask: u64::from_le_bytes(event.get(8..16)?.try_into().ok()?),
            thread: i32::from_le_bytes(event.get(20..24)?.try_into().ok()?),
            place: None,
            target: None,
        };
        while !records.is_empty() {
            let length = usize::from(u16::from_le_bytes(records.get(2..4)?.try_into().ok()?));
            let (record, rest) = records.split_at_checked(length.max(RECORD))?;
            records = rest;
            // The number of the file system follows the header.
            let about = record.get(RECORD + 8..);
            match record[0] {
                FID => parsed.target = Some(handle(about?)?.0),
                DFID_NAME => {
                    let (handle, rest) = handle(about?)?;
                    parsed.place = Some((handle, CStr::from_bytes_until_nul(rest).ok()?.into()));
                }
                _ => {}
            }
        }
        events.push(parsed);
    }
    Some(events)
}

/// A handle, and what follows it.
fn handle(bytes: &[u8]) -> Option<(Handle, &[u8])> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let (handle, rest) = bytes.split_at_checked(length.checked_add(8)?)?;
    Some((Handle(handle.to_vec()), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(records: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut tail = Vec::new();
        for (kind, about) in records {
            let length = (RECORD + 8 + about.len()) as u16;
            tail.extend([*kind, 0]);
            tail.extend(length.to_le_bytes());
            tail.extend([0; 8]);
            tail.extend(about);
        }
        let mut bytes = ((METADATA + tail.len()) as u32).to_le_bytes().to_vec();
        bytes.extend([3, 0, 24, 0]);
        bytes.extend(0x100u64.to_le_bytes());
        bytes.extend((-1i32).to_le_bytes());
        bytes.extend(77i32.to_le_bytes());
        [bytes, tail].concat()
    }

    fn of(handle: &[u8], name: &[u8]) -> Vec<u8> {
        [&(handle.len() as u32).to_le_bytes()[..], &1i32.to_le_bytes(), handle, name].concat()
    }

    #[test]
    fn an_event_says_where_and_what() {
        let bytes = [event(&[(DFID_NAME, of(b"dir", b"name\0\0\0")), (FID, of(b"file", b""))]), event(&[])].concat();
        let events = parse(&bytes).unwrap();
        assert_eq!(events.len(), 2);
        let (handle, name) = events[0].place.clone().unwrap();
        assert_eq!((&handle.0[8..], name.as_c_str(), events[0].thread), (&b"dir"[..], c"name", 77));
        assert_eq!(&events[0].target.as_ref().unwrap().0[8..], b"file");
        assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200), at: prop::sample::Index, byte: u8) {
            let _ = parse(&bytes);
            let mut damaged = event(&[(DFID_NAME, of(b"dir", b"name\0\0\0")), (FID, of(b"file", b""))]);
            let at = at.index(damaged.len());
            damaged[at] = byte;
            let _ = parse(&damaged);
        }
    }
}
