//! Escapes text that Markdown, GitHub or HTML would read as something else.
//!
//! Control characters, line ends and directional marks are escaped beforehand (`line::escaped`), so a text is always
//! one line.

/// The text, in the middle of a line or in a cell.
pub(super) fn text(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1).copied();
        match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '$' => out.extend(['\\', c]),
            // Inside a word it means nothing: `io_uring_enter` stays readable.
            '_' if is_word(before) && is_word(after) => out.push(c),
            '_' => out.extend(['\\', c]),
            // GitHub notifies people who are mentioned, and links numbers to issues, unless something is in between.
            '@' | '#' if is_word(after) => {
                out.push(c);
                out.push_str(NOTHING);
            }
            // `https://` and `www.` become links automatically.
            ':' if after == Some('/') => out.extend(['\\', c]),
            '.' if is_www(&chars[..at]) => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

/// Something invisible.
const NOTHING: &str = "<!-- -->";

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric())
}

fn is_www(before: &[char]) -> bool {
    before.len() >= 3 && before[before.len() - 3..].iter().all(|c| c.eq_ignore_ascii_case(&'w'))
}

/// An already escaped line, with its start escaped too if it would begin a heading, a list or a rule.
pub(super) fn at_line_start(line: &str) -> String {
    let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
    let (number, rest) = line.split_at(digits);
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    if digits > 0 && rest.starts_with(['.', ')']) && ends(&rest[1..]) {
        return format!("{number}\\{rest}");
    }
    let is_sign = |c: char| line.starts_with(c) && (ends(&line[1..]) || line[1..].starts_with(c));
    if line.starts_with(['#', '=']) || is_sign('-') || is_sign('+') {
        return format!("\\{line}");
    }
    line.to_owned()
}

/// The text inside HTML.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::line::escaped(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' | '#' => {
                out.push(c);
                out.push_str(NOTHING);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        for (plain, escaped) in [
            ("a|b `c` *d*", r"a\|b \`c\` \*d\*"),
            ("io_uring_enter _x_", r"io_uring_enter \_x\_"),
            ("<img src=x> &amp; [x](y)", r"\<img src=x\> \&amp; \[x\](y)"),
            ("@everyone #12 a@b", "@<!-- -->everyone #<!-- -->12 a@<!-- -->b"),
            ("http://x www.x.y 0.334 s", r"http\://x www\.x.y 0.334 s"),
            (r"back\slash", r"back\\slash"),
        ] {
            assert_eq!(text(plain), escaped);
        }
    }

    #[test]
    fn lines_begin_no_lists() {
        let shown = ["- x", "1. x", "12)", "# x", "---", "==", "+"].map(at_line_start);
        assert_eq!(shown, [r"\- x", r"1\. x", r"12\)", r"\# x", r"\---", r"\==", r"\+"]);
        for harmless in ["1.5 x", "-0.3 s", "+1", "a - b", ""] {
            assert_eq!(at_line_start(harmless), harmless);
        }
    }

    #[test]
    fn html_stays_text() {
        assert_eq!(html("</details><b>&\n"), "&lt;/details&gt;&lt;b&gt;&amp;\\n");
    }
}
