//! Lines made of styled pieces.
//!
//! File names, arguments and command names come from outside and may contain anything. Every piece of text passes
//! through [`Span::new`], which escapes control characters and marks that change the text direction; styles
//! become escape sequences only when a line is printed. So the only escape bytes in a report are those of its styles.

use unicode_width::UnicodeWidthStr;

/// How a piece of text stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    /// Time in user mode.
    User,
    /// Time in the kernel.
    Kernel,
    /// Time blocked.
    Blocked,
    /// Time ready without a CPU.
    Ready,
    /// What needs attention.
    Warning,
    /// What is good.
    Good,
    /// What is worse than something else.
    Worse,
    /// A picture made of characters.
    Shape,
}

impl Style {
    fn sequence(self) -> &'static str {
        match self {
            Style::Plain | Style::Shape => "",
            Style::Bold | Style::Worse => "\x1b[1m",
            Style::Dim => "\x1b[2m",
            Style::User => "\x1b[32m",
            Style::Kernel => "\x1b[33m",
            Style::Blocked => "\x1b[34m",
            Style::Ready => "\x1b[35m",
            Style::Warning => "\x1b[1;31m",
            Style::Good => "\x1b[1;32m",
        }
    }
}

/// A piece of text without control characters, and its style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Span {
    text: String,
    style: Style,
}

impl Span {
    pub(crate) fn new(text: impl AsRef<str>, style: Style) -> Span {
        Span { text: escaped(text.as_ref()), style }
    }

    pub(crate) fn width(&self) -> usize {
        self.text.width()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// At most this wide; `…` stands for what is cut.
    pub(crate) fn cut(self, width: usize) -> Span {
        Span { text: cut(&self.text, width), ..self }
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Span {
        Span::new(text, Style::Plain)
    }
}

impl From<String> for Span {
    fn from(text: String) -> Span {
        Span::new(text, Style::Plain)
    }
}

/// A line of a report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line(Vec<Span>);

impl Line {
    pub(crate) fn push(&mut self, span: impl Into<Span>) {
        self.0.push(span.into());
    }

    pub(crate) fn spans(&self) -> &[Span] {
        &self.0
    }

    pub(crate) fn space(&mut self, width: usize) {
        self.push(" ".repeat(width));
    }

    /// Appends the line to a report: never wider than `width`, without spaces at its end.
    pub(crate) fn print(self, out: &mut String, width: usize, colour: bool) {
        let mut left = width;
        let mut spans = Vec::new();
        for span in self.0 {
            let span = span.cut(left);
            left = left.saturating_sub(span.width());
            spans.push(span);
        }
        while let Some(last) = spans.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            spans.pop();
        }
        for Span { text, style } in spans {
            let styled = colour && !style.sequence().is_empty() && !text.trim().is_empty();
            if styled {
                out.push_str(style.sequence());
            }
            out.push_str(&text);
            if styled {
                out.push_str("\x1b[0m");
            }
        }
        out.push('\n');
    }
}

impl<const N: usize> From<[Span; N]> for Line {
    fn from(spans: [Span; N]) -> Line {
        Line(spans.into())
    }
}

/// The text with control characters, directional marks, and what no document may contain (XML has no `\u{fffe}`) escaped: `\n`,
/// `\u{1b}`, `\u{202e}`.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if has_effect(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character is not shown, but does something.
pub(crate) fn has_effect(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || is_invisible
}

/// The text, at most this many columns wide; `…` stands for what is cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    // A character can change the width of the one before it, so each prefix of the text is measured as a whole.
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let (mut fits, mut too_many) = (0, ends.len());
    while too_many - fits > 1 {
        let middle = fits.midpoint(too_many);
        if text[..ends[middle]].width() < width { fits = middle } else { too_many = middle }
    }
    format!("{}…", &text[..ends[fits]])
}

/// The text broken at spaces into pieces of at most this width; a longer word is cut.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in escaped(text).split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(line: Line, width: usize, colour: bool) -> String {
        let mut out = String::new();
        line.print(&mut out, width, colour);
        out
    }

    #[test]
    fn data_cannot_move_the_cursor() {
        let line = Line::from([Span::from("a\x1b[2Jb\nc\u{202e}d\u{9b}1m")]);
        assert_eq!(printed(line, 80, true), "a\\u{1b}[2Jb\\nc\\u{202e}d\\u{9b}1m\n");
        assert_eq!(escaped("\u{61c}\u{ffff}\u{e0041}ä文"), "\\u{61c}\\u{ffff}\\u{e0041}ä文");
    }

    #[test]
    fn a_line_is_cut_to_the_width() {
        let line = || Line::from([Span::from("wide 文字"), Span::new("more", Style::Bold)]);
        assert_eq!(printed(line(), 9, false), "wide 文字\n");
        assert_eq!(printed(line(), 8, false), "wide 文…\n");
        assert_eq!(printed(line(), 11, true), "wide 文字\x1b[1mm…\x1b[0m\n");
    }

    #[test]
    fn what_makes_a_character_wider_counts_where_it_is_cut() {
        for emoji in ["❤️", "⚠️"] {
            let name = emoji.repeat(20);
            for width in 0..40 {
                let cut = cut(&name, width);
                assert!(cut.width() <= width, "{cut} in {width}");
                assert!(width < 3 || cut.width() + 2 >= width, "{cut} in {width}");
                printed(Line::from([Span::from(name.as_str()), Span::from("more")]), width, false);
            }
        }
    }

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("extraordinarily", 7), ["extrao…"]);
    }
}
