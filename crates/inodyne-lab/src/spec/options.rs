//! Cutting a text of options into options: commas are everywhere, and only some of them separate.

use crate::key::Key;

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
        let (value, after) = match key.is_none_or(Key::is_place) {
            // An option that an inner place may have belongs to it, unless the outer one may have it too.
            true => in_brackets(value).unwrap_or_else(|| cut(value, own)),
            false => cut(value, &Key::ALL),
        };
        options.push((key, value.to_owned()));
        rest = after;
    }
    Ok(options)
}

/// Cuts at the first comma outside quotes and brackets that one of these keys follows.
fn cut<'a>(text: &'a str, keys: &[Key]) -> (&'a str, Option<&'a str>) {
    let mut nesting = Nesting::default();
    for (at, character) in text.char_indices() {
        if nesting.is_plain(character) && character == ',' && nesting.depth == 0 {
            let next = &text[at + 1..];
            if Key::prefix(next).is_some_and(|(key, _)| keys.contains(&key)) {
                return (&text[..at], Some(next));
            }
        }
    }
    (text, None)
}

/// What is between a bracket that `text` begins with and the one that closes it, and what follows the comma after
/// that; `None` where it does not have that form.
fn in_brackets(text: &str) -> Option<(&str, Option<&str>)> {
    let inner = text.strip_prefix('[')?;
    let mut nesting = Nesting { depth: 1, ..Nesting::default() };
    for (at, character) in inner.char_indices() {
        nesting.is_plain(character);
        if nesting.depth == 0 {
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

/// Checks that no quote, no backslash and no bracket reaches beyond the end; otherwise says what does. Whatever is next to such a
/// value would be read as part of it.
pub(super) fn closed(text: &str) -> Result<(), &'static str> {
    let mut nesting = Nesting::default();
    for character in text.chars() {
        nesting.is_plain(character);
        if nesting.depth < 0 {
            return Err("a closing bracket without its opening one");
        }
    }
    match nesting {
        Nesting { quote: Some(_), .. } | Nesting { escaped: true, .. } => Err("an open quote"),
        Nesting { depth: 1.., .. } => Err("an open bracket"),
        _ => Ok(()),
    }
}

/// Where a scan stands between a shell's quotes and our brackets.
#[derive(Default)]
struct Nesting {
    quote: Option<char>,
    escaped: bool,
    depth: i32,
}

impl Nesting {
    /// Takes the next character, and says whether it stands for itself outside quotes.
    fn is_plain(&mut self, character: char) -> bool {
        match (self.quote, character) {
            _ if self.escaped => self.escaped = false,
            (None | Some('"'), '\\') => self.escaped = true,
            (None, '"' | '\'') => self.quote = Some(character),
            (Some(open), _) if open == character => self.quote = None,
            (Some(_), _) => {}
            (None, _) => {
                self.depth += i32::from(character == '[') - i32::from(character == ']');
                return true;
            }
        }
        false
    }
}
