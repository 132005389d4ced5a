//! HTML elements, and escaping: whatever comes from a recording goes through [`Html::text`], an attribute's value, or
//! [`Html::data`]. Tags and attributes' names are written here in the source and nowhere else.

use serde_json::Value;

use crate::line::{Line, Span, Style, escaped};

/// An attribute.
pub(super) type Attribute<'a> = (&'static str, &'a str);

/// A page under construction.
pub(super) struct Html(String);

/// Nothing is loaded from anywhere, not even by mistake.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Elements that have no end tag.
const VOID: [&str; 2] = ["meta", "link"];

impl Html {
    pub(super) fn new(title: &str, css: &str) -> Html {
        let mut page = Html("<!DOCTYPE html>\n".to_owned());
        page.open("html", &[("lang", "en")]);
        page.open("head", &[]);
        page.empty("meta", &[("charset", "utf-8")]);
        page.empty("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
        page.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
        page.empty("meta", &[("name", "color-scheme"), ("content", "light dark")]);
        page.empty("link", &[("rel", "icon"), ("href", "data:,")]);
        page.element("title", &[], title);
        page.0.push_str(&format!("<style>\n{css}</style>\n</head>\n<body>\n"));
        page
    }

    pub(super) fn finish(mut self, script: &str) -> String {
        self.0.push_str(&format!("<script>\n{script}</script>\n</body>\n</html>\n"));
        self.0
    }

    pub(super) fn open(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.0.push_str(&markup_free(value));
            self.0.push('"');
        }
        self.0.push('>');
    }

    pub(super) fn close(&mut self, tag: &'static str) {
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push_str(if matches!(tag, "a" | "span" | "td" | "b") { ">" } else { ">\n" });
    }

    /// An element without contents.
    pub(super) fn empty(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.open(tag, attributes);
        if !VOID.contains(&tag) {
            self.close(tag);
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.0.push_str(&markup_free(text));
    }

    pub(super) fn element(&mut self, tag: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    pub(super) fn inside(&mut self, tag: &'static str, attributes: &[Attribute<'_>], contents: impl FnOnce(&mut Html)) {
        self.open(tag, attributes);
        contents(self);
        self.close(tag);
    }

    /// A section under a heading of this level, which a reader can collapse; nothing if it would be empty.
    pub(super) fn fold(
        &mut self,
        level: &'static str,
        heading: impl FnOnce(&mut Html),
        contents: impl FnOnce(&mut Html),
    ) {
        let before = self.0.len();
        self.open("details", &[("class", "fold"), ("open", "")]);
        self.inside("summary", &[], |page| page.inside(level, &[], heading));
        let begun = self.0.len();
        contents(self);
        if self.0.len() > begun { self.close("details") } else { self.0.truncate(before) }
    }

    /// A piece of text, styled as in the report.
    pub(super) fn span(&mut self, span: &Span) {
        match class_of(span.style()) {
            "" => self.text(span.text()),
            class => self.element("span", &[("class", class)], span.text()),
        }
    }

    /// All pieces of a line.
    pub(super) fn line(&mut self, line: &Line) {
        line.spans().iter().for_each(|span| self.span(span));
    }

    /// A line as a paragraph, in a single style if all of the line has the same.
    pub(super) fn paragraph(&mut self, line: &Line) {
        let shown: Vec<&Span> = line.spans().iter().filter(|span| !span.text().trim().is_empty()).collect();
        match shown.as_slice() {
            [] => {}
            [only] => self.element("p", &[("class", class_of(only.style()))], only.text().trim_start()),
            _ => self.inside("p", &[], |page| page.line(line)),
        }
    }

    /// JSON for the script. No byte of it can end the element or begin a comment.
    pub(super) fn data(&mut self, kind: &str, value: &Value) {
        self.open("script", &[("type", "application/json"), ("data-kind", kind)]);
        self.0.push_str(&harmless_json(value));
        self.close("script");
    }
}

/// The CSS class of a style.
pub(super) fn class_of(style: Style) -> &'static str {
    match style {
        Style::Bold => "strong",
        Style::Dim => "dim",
        Style::Warning | Style::Worse => "warning",
        Style::Good => "good",
        Style::Plain | Style::User | Style::Kernel | Style::Blocked | Style::Ready | Style::Shape => "",
    }
}

/// Directional marks and control characters are escaped, so that they are visible and have no effect.
pub(crate) fn markup_free(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escaped(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// In JSON these characters can only occur inside strings, where they may as well be written as numeric escapes.
fn harmless_json(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_ends_the_element_that_it_is_in() {
        let hostile = "</script><!--<script>\u{2028}\u{202e}\" onload='x' &amp;";
        let mut page = Html(String::new());
        page.element("p", &[("title", hostile)], hostile);
        assert!(!page.0.contains("<script") && !page.0.contains("<!--") && !page.0.contains('\u{202e}'), "{}", page.0);
        assert_eq!(page.0.matches('"').count(), 2, "{}", page.0);
        let data = harmless_json(&json!({ hostile: hostile }));
        assert!(!data.contains('<') && !data.contains('\u{2028}') && !data.contains('&'), "{data}");
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap(), json!({ hostile: hostile }));
    }
}
