//! Cutting a text of options into options: commas are everywhere, and only some of them separate.

use super::Key;

/// The options in `text`, each with its key and value; the first may be a bare value where `is_bare`.
pub(super) fn split(text: &str, own: &[Key], is_bare: bool) -> Result<Vec<(Option<Key>, String)>, String> {
    let mut options = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (key, value) = match Key::prefix(text).filter(|_| !is_bare || !options.is_empty()) {
            Some((key, value)) if own.contains(&key) => (Some(key), value),
            None if is_bare && options.is_empty() => (None, text),
            _ => return Err(text.split('=').next().unwrap_or(text).to_owned()),
        };
        let (value, after) = match value.strip_prefix('[').filter(|_| key.is_none_or(Key::is_place)) {
            Some(inner) => in_brackets(inner).unwrap_or((value, None)),
            // What an inner place may know for itself belongs to it, unless the outer one has it too.
            None if key.is_none_or(Key::is_place) => cut(value, own),
            None => cut(value, &Key::ALL),
        };
        options.push((key, value.to_owned()));
        rest = after;
    }
    Ok(options)
}

/// Cuts at the first comma outside quotes that one of these keys follows.
fn cut<'a>(text: &'a str, keys: &[Key]) -> (&'a str, Option<&'a str>) {
    let mut quoting = Quoting::default();
    for (at, character) in text.char_indices() {
        if quoting.is_plain(character) && character == ',' {
            let next = &text[at + 1..];
            if Key::prefix(next).is_some_and(|(key, _)| keys.contains(&key)) {
                return (&text[..at], Some(next));
            }
        }
    }
    (text, None)
}

/// What stands before the bracket that closes, and what follows the comma after it; `None` where that is not so.
fn in_brackets(inner: &str) -> Option<(&str, Option<&str>)> {
    let (mut quoting, mut depth) = (Quoting::default(), 1);
    for (at, character) in inner.char_indices() {
        if quoting.is_plain(character) {
            depth += i32::from(character == '[') - i32::from(character == ']');
        }
        if depth == 0 {
            let after = &inner[at + 1..];
            let next = after.strip_prefix(',');
            return (after.is_empty() || next.is_some()).then_some((&inner[..at], next));
        }
    }
    None
}

/// An inner place as it is written among options: in brackets where it could be read otherwise.
pub(super) fn bracketed(text: String, own: &[Key]) -> String {
    let is_plain = cut(&text, own).1.is_none() && !text.starts_with('[');
    if is_plain { text } else { format!("[{text}]") }
}

/// Whether no quote and no backslash reaches beyond the end.
pub(super) fn is_closed(text: &str) -> bool {
    let mut quoting = Quoting::default();
    text.chars().for_each(|character| {
        quoting.is_plain(character);
    });
    quoting.quote.is_none() && !quoting.escaped
}

/// Where a scan stands between a shell's quotes.
#[derive(Default)]
struct Quoting {
    quote: Option<char>,
    escaped: bool,
}

impl Quoting {
    /// Takes the next character, and says whether it stands for itself outside quotes.
    fn is_plain(&mut self, character: char) -> bool {
        match (self.quote, character) {
            _ if self.escaped => self.escaped = false,
            (None | Some('"'), '\\') => self.escaped = true,
            (None, '"' | '\'') => self.quote = Some(character),
            (Some(open), _) if open == character => self.quote = None,
            (Some(_), _) => {}
            (None, _) => return true,
        }
        false
    }
}
