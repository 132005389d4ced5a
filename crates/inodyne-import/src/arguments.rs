//! What little is asked of the arguments of a call: the path that it looks up, the file and words of an `execve`.
//!
//! strace writes strings in double quotes, with octal and C escapes, and `...` behind one that it has cut.

/// A string as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// Its bytes as text; what is not UTF-8 is replaced.
    pub(crate) text: String,
    /// Whether the log has only its beginning.
    pub(crate) is_cut: bool,
}

/// The strings of an argument list, those in brackets included, in order.
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

/// Whether the first string among the arguments of this call is a path that it looks up.
pub(crate) fn looks_up(call: &str) -> bool {
    matches!(
        call,
        "stat"
            | "lstat"
            | "newfstatat"
            | "fstatat64"
            | "statx"
            | "stat64"
            | "lstat64"
            | "open"
            | "openat"
            | "openat2"
            | "access"
            | "faccessat"
            | "faccessat2"
            | "readlink"
            | "readlinkat"
            | "execve"
            | "execveat"
    )
}

/// The words of an `execve`: the strings in the first brackets. The second value says whether some are missing.
pub(crate) fn words(arguments: &str) -> (Vec<String>, bool) {
    let Some(file) = strings(arguments).next() else { return (Vec::new(), true) };
    let all: Vec<Text> = strings(arguments).skip(1).collect();
    let cut = file.is_cut || all.iter().any(|word| word.is_cut) || arguments.contains(", ...]");
    // The environment is an address unless strace was told to write it out (-v): then only the first list is meant.
    let listed = arguments.split_once('[').map_or("", |(_, list)| list);
    let count = strings(listed.split("], ").next().unwrap_or("")).count();
    (all.into_iter().take(count).map(|word| word.text).collect(), cut)
}

/// The string that begins here, up to its closing quote, and how long it is in the log with that; none where it is not closed.
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

/// The byte that an escape stands for, and its length behind the backslash.
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
    }
}
