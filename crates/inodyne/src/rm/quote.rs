//! Names as GNU tools write them in messages: quoted so that a shell would read the same name.
//!
//! Scripts read these messages and people paste from them, and a name may hold anything but a zero byte and a slash,
//! line breaks and terminal controls included.

use std::{ffi::CStr, sync::LazyLock};

/// Whether messages may contain more than ASCII. Only the C library knows: locales have aliases and modifiers, and one that
/// is not installed counts as "C".
pub fn locale_is_utf8() -> bool {
    static UTF8: LazyLock<bool> = LazyLock::new(|| {
        // SAFETY: called once, before there are threads that could ask for the locale meanwhile; the answer is a string
        // that stays valid until the locale is set again, which nobody does.
        let codeset = unsafe {
            libc::setlocale(libc::LC_CTYPE, c"".as_ptr());
            CStr::from_ptr(libc::nl_langinfo(libc::CODESET))
        };
        codeset == c"UTF-8"
    });
    *UTF8
}

/// `name` in quotes: `'plain'`, `"it's"`, `'two'$'\n''lines'`.
pub fn quote(name: &[u8], utf8: bool) -> String {
    let pieces = pieces(name, utf8);
    let all_plain = pieces.iter().all(|piece| matches!(piece, Piece::Plain(_)));
    if all_plain && name.contains(&b'\'') && name.iter().enumerate().all(|(at, &byte)| means_itself(at, byte)) {
        return format!("\"{}\"", String::from_utf8_lossy(name));
    }
    let mut text = String::from("'");
    // GNU tools read a name with an apostrophe twice and begin the second time as they ended the first.
    let mut escaping = name.contains(&b'\'') && matches!(pieces.last(), Some(Piece::Byte(_)));
    for piece in pieces {
        match piece {
            Piece::Plain('\'') => {
                text.push_str("'\\''");
                escaping = false;
            }
            Piece::Plain(character) => {
                if std::mem::take(&mut escaping) {
                    text.push_str("''");
                }
                text.push(character);
            }
            Piece::Byte(byte) => {
                if !std::mem::replace(&mut escaping, true) {
                    text.push_str("'$'");
                }
                text.push_str(&escape(byte));
            }
        }
    }
    text.push('\'');
    text
}

/// As [`quote`], but a name that means itself to a shell stays as it is.
pub fn quote_if_needed(name: &[u8], utf8: bool) -> String {
    let is_special = |byte| b" !\"$&'()*;<=>?[\\^`|".contains(byte);
    let is_plain = pieces(name, utf8).iter().all(|piece| matches!(piece, Piece::Plain(_)));
    if is_plain && !name.iter().any(is_special) { String::from_utf8_lossy(name).into() } else { quote(name, utf8) }
}

enum Piece {
    Plain(char),
    Byte(u8),
}

fn pieces(name: &[u8], utf8: bool) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_ascii() && !character.is_ascii_control() || utf8 && is_printable(character) {
                pieces.push(Piece::Plain(character));
            } else {
                pieces.extend(character.encode_utf8(&mut [0; 4]).bytes().map(Piece::Byte));
            }
        }
        pieces.extend(chunk.invalid().iter().copied().map(Piece::Byte));
    }
    pieces
}

/// Whether the C library calls this character printable, apart from code points that Unicode may yet assign.
fn is_printable(character: char) -> bool {
    let code = character as u32;
    let never_assigned = code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code);
    !character.is_control() && !matches!(character, '\u{2028}' | '\u{2029}') && !never_assigned
}

/// Whether a byte means the same between double quotes as it does by itself.
fn means_itself(at: usize, byte: u8) -> bool {
    match byte {
        b'#' | b'~' => at == 0,
        b'%' | b'+' | b',' | b'-' | b'.' | b'/' | b':' | b']' | b'_' | b' ' | b'\'' | b'@' => true,
        other => other.is_ascii_alphanumeric() || other >= 0x80,
    }
}

fn escape(byte: u8) -> String {
    match byte {
        b'\n' => "\\n".into(),
        b'\t' => "\\t".into(),
        b'\r' => "\\r".into(),
        7 => "\\a".into(),
        8 => "\\b".into(),
        11 => "\\v".into(),
        12 => "\\f".into(),
        other => format!("\\{other:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{quote, quote_if_needed};

    #[test]
    fn names_are_quoted_for_a_shell() {
        for (name, quoted) in [
            (&b"plain"[..], "'plain'"),
            (b"", "''"),
            (b"two words", "'two words'"),
            (b"it's", "\"it's\""),
            (b"it's $5", "'it'\\''s $5'"),
            (b"a\nb", "'a'$'\\n''b'"),
            (b"\x01\x02", "''$'\\001\\002'"),
            (b"\xff", "''$'\\377'"),
            (b"a\n'b", "'a'$'\\n'\\''b'"),
        ] {
            assert_eq!(quote(name, true), quoted);
        }
        assert_eq!(quote("ä".as_bytes(), true), "'ä'");
        assert_eq!(quote("ä".as_bytes(), false), "''$'\\303\\244'");
    }

    #[test]
    fn only_what_a_shell_would_change_needs_quotes() {
        for (name, written) in [("-foo", "-foo"), ("-f oo", "'-f oo'"), ("--a=b", "'--a=b'"), ("-it's", "\"-it's\"")] {
            assert_eq!(quote_if_needed(name.as_bytes(), true), written);
        }
    }
}
