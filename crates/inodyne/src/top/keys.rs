//! Decodes keys from the bytes that a terminal sends.
//!
//! A key is one byte, a character of several bytes, or a sequence that begins with an escape (ECMA-48, section 5.4), and a read may
//! return only part of it. Anything that is not a key of interest is skipped, and nothing is ever waited for beyond its time: neither the
//! rest of a sequence, nor a terminal that is gone.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A terminal sends a sequence at once; what comes later is another key.
const WHOLE_WITHIN: Duration = Duration::from_millis(30);
/// No key's sequence is longer.
const LONGEST: usize = 32;
const ESCAPE: u8 = 0x1b;

/// What has arrived and was not taken yet.
#[derive(Debug, Default)]
pub struct Keys(Vec<u8>);

impl Keys {
    /// The next key, if one comes within this time, and before there is something to read from `others`.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn next(&mut self, terminal: impl AsFd, others: impl AsFd, within: Duration) -> io::Result<Option<KeyEvent>> {
        let mut has_read = false;
        loop {
            if let Some(key) = self.take() {
                return Ok(Some(key));
            }
            let time = match self.0.is_empty() {
                false => WHOLE_WITHIN,
                true if has_read => return Ok(None),
                true => within,
            };
            match read(&terminal, &others, time)? {
                Came::Bytes(bytes) => self.0.extend(bytes),
                Came::Other => return Ok(None),
                Came::Nothing => return Ok(self.take_rest()),
            }
            has_read = true;
        }
    }

    /// The next key that has arrived completely.
    fn take(&mut self) -> Option<KeyEvent> {
        while let Some((length, key)) = first(&self.0) {
            self.0.drain(..length);
            if key.is_some() {
                return key;
            }
        }
        None
    }

    /// Nothing more has come: an escape alone is the Escape key, and a part of anything else is nothing.
    fn take_rest(&mut self) -> Option<KeyEvent> {
        let rest = std::mem::take(&mut self.0);
        (rest == [ESCAPE]).then(|| KeyCode::Esc.into())
    }
}

/// What came first.
enum Came {
    /// From the terminal.
    Bytes(Vec<u8>),
    /// There is something to read from the others.
    Other,
    /// Nothing.
    Nothing,
}

/// One read if there is something to read: another one could block for ever.
fn read(terminal: &impl AsFd, others: &impl AsFd, within: Duration) -> io::Result<Came> {
    let mut descriptors = [PollFd::new(terminal, PollFlags::IN), PollFd::new(others, PollFlags::IN)];
    match poll(&mut descriptors, Timespec::try_from(within).ok().as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let [of_terminal, of_others] = descriptors.map(|descriptor| !descriptor.revents().is_empty());
    if of_others {
        return Ok(Came::Other);
    }
    if !of_terminal {
        return Ok(Came::Nothing);
    }
    let mut bytes = [0; 256];
    match rustix::io::read(terminal, &mut bytes) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is gone")),
        Ok(length) => Ok(Came::Bytes(bytes[..length].to_vec())),
        Err(Errno::INTR | Errno::AGAIN) => Ok(Came::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// How many bytes the first key has, and which key it is, if it is one; nothing if more of it is to come.
fn first(bytes: &[u8]) -> Option<(usize, Option<KeyEvent>)> {
    let (first, rest) = bytes.split_first()?;
    let one = |code: KeyCode| Some((1, Some(code.into())));
    match *first {
        ESCAPE => escaped(rest).map(|(length, key)| (1 + length, key)),
        b'\r' => one(KeyCode::Enter),
        // Which of them the key sends depends on the terminal's settings.
        0x08 | 0x7f => one(KeyCode::Backspace),
        byte @ 0x01..=0x1a => {
            let letter = KeyCode::Char((b'a' + byte - 1).into());
            Some((1, Some(KeyEvent::new(letter, KeyModifiers::CONTROL))))
        }
        0x00..=0x1f => Some((1, None)),
        byte @ 0x20..=0x7e => one(KeyCode::Char(byte.into())),
        _ => character(bytes),
    }
}

/// What follows an escape.
fn escaped(bytes: &[u8]) -> Option<(usize, Option<KeyEvent>)> {
    match *bytes.first()? {
        // The Escape key, and another key after it.
        ESCAPE => Some((0, Some(KeyCode::Esc.into()))),
        b'[' => sequence(&bytes[1..]).map(|(length, code)| (1 + length, code.map(KeyEvent::from))),
        b'O' => bytes.get(1).map(|last| match last {
            0x20..=0x7e => (2, named(*last, &[]).map(KeyEvent::from)),
            // Something else begins.
            _ => (1, None),
        }),
        _ => first(bytes).map(|(length, key)| {
            let with_alt = |key: KeyEvent| KeyEvent::new(key.code, key.modifiers | KeyModifiers::ALT);
            (length, key.map(with_alt))
        }),
    }
}

/// What follows `ESC [`: parameters, and a byte that says what it is. Modifiers are among the parameters, and do not matter.
fn sequence(bytes: &[u8]) -> Option<(usize, Option<KeyCode>)> {
    // The Linux console sends `[[A` to `[[E` for F1 to F5.
    if bytes.first() == Some(&b'[') {
        return bytes.get(1).map(|_| (2, None));
    }
    let Some(at) = bytes.iter().take(LONGEST).position(|byte| !matches!(byte, 0x20..=0x3f)) else {
        return (bytes.len() >= LONGEST).then_some((LONGEST, None));
    };
    match bytes[at] {
        last @ 0x40..=0x7e => Some((at + 1, named(last, &bytes[..at]))),
        // Something else begins.
        _ => Some((at, None)),
    }
}

/// The key that a sequence names by its last byte, or by its first parameter.
fn named(last: u8, parameters: &[u8]) -> Option<KeyCode> {
    let number = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(match (last, number) {
        (b'A', _) => KeyCode::Up,
        (b'B', _) => KeyCode::Down,
        (b'C', _) => KeyCode::Right,
        (b'D', _) => KeyCode::Left,
        (b'H', _) | (b'~', b"1" | b"7") => KeyCode::Home,
        (b'F', _) | (b'~', b"4" | b"8") => KeyCode::End,
        (b'~', b"5") => KeyCode::PageUp,
        (b'~', b"6") => KeyCode::PageDown,
        _ => return None,
    })
}

/// A character of several bytes; a byte that cannot begin one is skipped.
fn character(bytes: &[u8]) -> Option<(usize, Option<KeyEvent>)> {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((1, None)),
    };
    let known = &bytes[..length.min(bytes.len())];
    match std::str::from_utf8(known) {
        Ok(text) => Some((length, text.chars().next().map(|character| KeyCode::Char(character).into()))),
        // It is incomplete, and valid so far.
        Err(error) if error.error_len().is_none() => None,
        Err(_) => Some((1, None)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rustix::io::write;
    use rustix::pipe::pipe;

    use super::*;

    /// All keys of bytes that come in these parts, and that nothing follows.
    fn keys(parts: &[&[u8]]) -> Vec<KeyEvent> {
        let (mut keys, mut all) = (Keys::default(), Vec::new());
        for part in parts {
            keys.0.extend_from_slice(part);
            all.extend(std::iter::from_fn(|| keys.take()));
        }
        all.extend(keys.take_rest());
        assert!(keys.0.is_empty());
        all
    }

    fn codes(bytes: &[u8]) -> Vec<KeyCode> {
        keys(&[bytes]).into_iter().map(|key| key.code).collect()
    }

    #[test]
    fn the_keys_of_all_terminals_are_known() {
        use KeyCode::{Backspace, Char, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Up};
        assert_eq!(codes(b"\x1b[A\x1b[B\x1b[C\x1b[D"), [Up, Down, Right, Left]);
        assert_eq!(codes(b"\x1bOA\x1bOB\x1bOH\x1bOF"), [Up, Down, Home, End]);
        assert_eq!(codes(b"\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[7~\x1b[8~"), [Home, End, Home, End, Home, End]);
        assert_eq!(codes(b"\x1b[5~\x1b[6~\x1b[1;5A\x1b[5;2~"), [PageUp, PageDown, Up, PageUp]);
        assert_eq!(codes(b"\r\x7f\x08\x1b"), [Enter, Backspace, Backspace, Esc]);
        assert_eq!(codes("q/ä€😀".as_bytes()), ['q', '/', 'ä', '€', '😀'].map(Char));
        let with = |code, modifiers| KeyEvent::new(Char(code), modifiers);
        assert_eq!(keys(&[b"\x03\x17"]), ['c', 'w'].map(|letter| with(letter, KeyModifiers::CONTROL)));
        assert_eq!(keys(&[b"\x1bw\x1b\x17"])[0], with('w', KeyModifiers::ALT));
        assert_eq!(codes(b"\x1b\x1b[A\x1b\x1b"), [Esc, Up, Esc, Esc]);
    }

    #[test]
    fn what_is_no_key_is_passed_over() {
        // The 5 of the keypad, Alt-[ alone, F1 to F5 on a console and elsewhere, and what no terminal sends.
        for bytes in [
            &b"\x1b[E"[..],
            b"\x1b[",
            b"\x1b[[A\x1b[[E",
            b"\x1bOP\x1b[15~",
            b"\x1bO",
            b"\x1b[<0;1;1M",
            b"\x1b[1;",
            b"\x00\x1c",
            b"\xff\x80\xc3",
            b"\xe2\x82",
        ] {
            assert_eq!(keys(&[bytes]), [], "{bytes:?}");
            assert_eq!(codes(&[bytes, b"\x1b[A"].concat()).last(), Some(&KeyCode::Up), "{bytes:?}");
        }
        assert_eq!(codes(b"\xc3q"), [KeyCode::Char('q')]);
        assert_eq!(codes(&[b"\x1b[", &[b'1'; 1_000][..], b"q"].concat()).last(), Some(&KeyCode::Char('q')));
    }

    #[test]
    fn a_key_may_come_in_parts() {
        for bytes in ["\x1b[A", "\x1b[5~", "\x1bOB", "€", "\x1b[1;5H", "\x1bé"] {
            let whole = keys(&[bytes.as_bytes()]);
            assert_eq!(whole.len(), 1);
            for at in 1..bytes.len() {
                let (begin, end) = bytes.as_bytes().split_at(at);
                assert_eq!(keys(&[begin, end]), whole, "{bytes:?} at {at}");
            }
        }
    }

    #[test]
    fn nothing_is_waited_for_beyond_its_time() {
        let ((terminal, types), (others, signals)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
        let mut keys = Keys::default();
        let mut next = |within| keys.next(&terminal, &others, Duration::from_millis(within));
        let began = Instant::now();
        assert_eq!(next(10).expect("it is there"), None);
        for bytes in [&b"\x1b[E"[..], b"\x1b[", b"\x1b[1;"] {
            write(&types, bytes).expect("there is room");
            assert_eq!(next(60_000).expect("it is there"), None, "{bytes:?}");
        }
        write(&types, b"\x1b").expect("there is room");
        assert_eq!(next(60_000).expect("it is there"), Some(KeyCode::Esc.into()));
        write(&signals, b"x").expect("there is room");
        assert_eq!(next(60_000).expect("it is there"), None);
        rustix::io::read(&others, &mut [0; 1]).expect("one");
        drop(types);
        let gone = next(60_000).expect_err("nobody types any more");
        assert_eq!(gone.kind(), io::ErrorKind::UnexpectedEof);
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
