//! The little that is needed from the arguments of a call: the path that it looks up, the file and words of an `execve`.
//!
//! strace writes strings in double quotes, with octal and C escapes, and appends `...` to one that it has truncated.

/// A string from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// Its bytes as text; what is not UTF-8 is replaced.
    pub(crate) text: String,
    /// Whether the log has only the start of it.
    pub(crate) is_cut: bool,
}

/// The strings of an argument list, including those in brackets, in order.
pub(crate) fn strings(arguments: &str) -> impl Iterator<Item = Text> {
    let mut rest = arguments;
    std::iter::from_fn(move || {
        let begin = rest.find('"')? + 1;
        let (bytes, length) = unescaped(&rest.as_bytes()[begin..])?;
        rest = &rest[begin + length..];
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Some(Text { text, is_cut: rest.starts_with("...") })
    })
}

/// The words of an `execve`: the strings in the first list. The second value says whether some are missing. The environment is an
/// address, unless strace was told to write it out (-v); then it is the second list.
pub(crate) fn words(arguments: &str) -> (Vec<String>, bool) {
    let Some(list) = outside_strings(arguments, b'[') else { return (Vec::new(), true) };
    let list = &arguments[list + 1..];
    let end = outside_strings(list, b']');
    let list = &list[..end.unwrap_or(list.len())];
    let file = strings(arguments).next();
    let words: Vec<Text> = strings(list).collect();
    let cut =
        end.is_none() || list.ends_with("...") || file.into_iter().chain(words.iter().cloned()).any(|text| text.is_cut);
    (words.into_iter().map(|word| word.text).collect(), cut)
}

/// The first position of this byte outside strings: file names may contain any byte.
fn outside_strings(text: &str, byte: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'"' => at += 1 + unescaped(&bytes[at + 1..])?.1,
            found if found == byte => return Some(at),
            _ => at += 1,
        }
    }
}

/// The string that begins here, up to its closing quote, and its length in the log including the quote; `None` if it is not closed.
fn unescaped(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut text = Vec::new();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((text, at + 1)),
            b'\\' => {
                let (byte, length) = escape(&bytes[at + 1..])?;
                text.push(byte);
                at += 1 + length;
            }
            byte => {
                text.push(byte);
                at += 1;
            }
        }
    }
}

/// The byte that an escape stands for, and the length of the escape after the backslash.
fn escape(bytes: &[u8]) -> Option<(u8, usize)> {
    let first = *bytes.first()?;
    let simple = |byte| Some((byte, 1));
    match first {
        b'n' => simple(b'\n'),
        b't' => simple(b'\t'),
        b'r' => simple(b'\r'),
        b'v' => simple(0x0b),
        b'f' => simple(0x0c),
        b'0'..=b'7' => {
            let digits = bytes.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
            let value = bytes[..digits].iter().fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
            Some((value as u8, digits))
        }
        b'x' => {
            let hex = std::str::from_utf8(bytes.get(1..3)?).ok()?;
            Some((u8::from_str_radix(hex, 16).ok()?, 3))
        }
        other => simple(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_they_were() {
        let all: Vec<Text> = strings(r#"AT_FDCWD</tmp>, "a\"b\\c\303\244\n", "cut"..., 0"#).collect();
        assert_eq!(all[0], Text { text: "a\"b\\cä\n".to_owned(), is_cut: false });
        assert_eq!(all[1], Text { text: "cut".to_owned(), is_cut: true });
        assert_eq!(strings("\"not closed").count(), 0);
    }

    #[test]
    fn the_words_of_a_program() {
        let (of, cut) = words(r#""/usr/bin/sh", ["sh", "-c", "ls; cat"...], 0x7fff /* 35 vars */"#);
        assert_eq!((of.join("|"), cut), ("sh|-c|ls; cat".to_owned(), true));
        let (of, cut) = words(r#""/bin/true", ["true"], ["HOME=/root", "A=b"]"#);
        assert_eq!((of.join("|"), cut), ("true".to_owned(), false));
        let (of, cut) = words(r#""/opt/[old]/a \" [b", ["a], [b", "c]"], 0x7fff /* 35 vars */"#);
        assert_eq!((of.join("|"), cut), ("a], [b|c]".to_owned(), false));
        let (of, cut) = words(r#""/bin/ls", ["ls", "x", ...], 0x7fff"#);
        assert_eq!((of.join("|"), cut), ("ls|x".to_owned(), true));
    }
}
