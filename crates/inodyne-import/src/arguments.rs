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
        let begin = outside_strings(rest, b'"')? + 1;
        let (bytes, length) = unescaped(&rest.as_bytes()[begin..], b'"')?;
        rest = &rest[begin + length..];
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Some(Text { text, is_cut: rest.starts_with("...") })
    })
}

/// The path that a call looks up, by its name of those that it is given first. A relative one is completed by the directory that the log
/// names beside the descriptor (`-y`). One that is relative to a descriptor of which the log does not say more begins with `…/`: the same
/// name may be in many directories. None for the descriptor itself (`newfstatat(3, "", …, AT_EMPTY_PATH)`).
pub(crate) fn path(arguments: &str) -> Option<Text> {
    let before = &arguments[..outside_strings(arguments, b'"')?];
    let name = strings(arguments).next().filter(|name| !name.text.is_empty())?;
    if name.text.starts_with('/') {
        return Some(name);
    }
    let is_of_working_directory = before.is_empty() || WORKING_DIRECTORY.iter().any(|it| before.starts_with(it));
    let text = match directory(before) {
        Some(directory) => format!("{}/{}", directory.trim_end_matches('/'), name.text),
        None if is_of_working_directory => name.text,
        None => format!("…/{}", name.text),
    };
    Some(Text { text, is_cut: name.is_cut })
}

/// `AT_FDCWD`, also as a number (`-X`).
const WORKING_DIRECTORY: [&str; 3] = ["AT_FDCWD", "-100", "0xffffff9c"];

/// The directory that stands beside a descriptor: `3</x>`.
fn directory(descriptor: &str) -> Option<String> {
    let begin = descriptor.find('<')? + 1;
    let (bytes, _) = unescaped(&descriptor.as_bytes()[begin..], b'>')?;
    Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|path| path.starts_with('/'))
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

/// The first position of this byte outside strings: file names may contain any byte, and what strace writes of them outside strings
/// (`-y`) is escaped, too.
fn outside_strings(text: &str, byte: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            found if found == byte => return Some(at),
            b'"' => at += 1 + unescaped(&bytes[at + 1..], b'"')?.1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The string that begins here, up to the byte that closes it, and its length in the log including that; `None` if it is not closed.
fn unescaped(bytes: &[u8], closing: u8) -> Option<(Vec<u8>, usize)> {
    let mut text = Vec::new();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            byte if byte == closing => return Some((text, at + 1)),
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
    fn a_quote_in_the_name_of_a_directory_begins_no_string() {
        let all: Vec<Text> = strings(r#"AT_FDCWD</a\"b>, "c", 0"#).collect();
        assert_eq!(all, [Text { text: "c".to_owned(), is_cut: false }]);
        let (of, cut) = words(r#"3</a\"b>, "", ["ls", "x"], 0x7fff, AT_EMPTY_PATH"#);
        assert_eq!((of.join("|"), cut), ("ls|x".to_owned(), false));
    }

    #[test]
    fn paths_are_completed_where_the_log_names_the_directory() {
        let of = |arguments| path(arguments).map(|path| path.text);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(r#"AT_FDCWD, "/x", O_RDONLY"#), some("/x"));
        assert_eq!(of(r#""x", {st_mode=S_IFREG}"#), some("x"));
        assert_eq!(of(r#"AT_FDCWD, "x", 0"#), some("x"));
        assert_eq!(of(r#"-100, "x", 0"#), some("x"));
        assert_eq!(of(r#"AT_FDCWD</>, "x", 0"#), some("/x"));
        assert_eq!(of(r#"4</a\"b\76\303\244/c>, "x", 0"#), some("/a\"b>ä/c/x"));
        assert_eq!(of(r#"4</a>, "/x", 0"#), some("/x"));
        assert_eq!(of(r#"4, "x", 0"#), some("…/x"));
        assert_eq!(of(r#"4<socket:[12]>, "x", 0"#), some("…/x"));
        // How glibc's fstat looks.
        assert_eq!(of(r#"3</a>, "", {st_mode=S_IFREG}, AT_EMPTY_PATH"#), None);
        assert_eq!(of("3, 0x7ffe, 0"), None);
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
