//! HTML elements, and escaping: whatever comes from a recording goes through [`Html::text`], an attribute's value, or
//! [`Html::data`]. Tags and attributes' names are written here in the source and nowhere else.

use serde_json::Value;

use crate::line::{Line, Span, Style, escaped};
use crate::table::{Align, Row, Table};
use crate::text::page::Body;

/// An attribute.
pub(super) type Attribute<'a> = (&'static str, &'a str);

/// A column of a table.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    heading: &'a str,
    /// Of the heading's cell: `n` for numbers, `bar` for what is drawn.
    class: &'static str,
    /// Whether a click on the heading sorts.
    sorts: bool,
}

impl<'a> Column<'a> {
    pub(super) fn text(heading: &'a str) -> Column<'a> {
        Column { heading, class: "", sorts: false }
    }

    pub(super) fn number(heading: &'a str) -> Column<'a> {
        Column { heading, class: "n", sorts: false }
    }

    pub(super) fn drawn(heading: &'a str) -> Column<'a> {
        Column { heading, class: "bar", sorts: false }
    }

    pub(super) fn sorting(self) -> Column<'a> {
        Column { sorts: true, ..self }
    }
}

/// A page as it grows.
pub(super) struct Html(String);

/// Nothing is loaded from anywhere, also not by mistake.
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

    /// A table that scrolls where it is too wide; `contents` writes its body, and its foot where it has one.
    pub(super) fn table(&mut self, class: &str, columns: &[Column<'_>], contents: impl FnOnce(&mut Html)) {
        let sorts = if columns.iter().any(|column| column.sorts) { "sorts " } else { "" };
        self.inside("div", &[("class", "scroll")], |page| {
            page.inside("table", &[("class", &format!("{sorts}{class}"))], |page| {
                page.inside("thead", &[], |page| page.inside("tr", &[], |page| page.headings(columns)));
                contents(page);
            });
        });
    }

    fn headings(&mut self, columns: &[Column<'_>]) {
        for column in columns {
            // What heads nothing is no heading to whoever has the page read out.
            if column.heading.is_empty() {
                self.element("td", &[], "");
                continue;
            }
            self.inside("th", &[("class", column.class), ("scope", "col")], |page| {
                if column.sorts {
                    page.element("button", &[("type", "button")], column.heading);
                } else {
                    page.text(column.heading);
                }
            });
        }
    }

    /// A row of texts.
    pub(super) fn cells(&mut self, cells: &[(&str, &str)]) {
        self.inside("tr", &[], |page| {
            for (class, text) in cells {
                page.element("td", &[("class", class)], text);
            }
        });
    }

    /// A table as the report in text has it; `first` writes what stands at the beginning of a row, by the row's number.
    pub(super) fn same(&mut self, class: &str, table: &Table, first: impl Fn(&mut Html, usize, &Span)) {
        let columns: Vec<Column<'_>> = table
            .columns
            .iter()
            .map(|(heading, align)| match align {
                Align::Left => Column::text(heading.text()),
                Align::Right => Column::number(heading.text()),
            })
            .collect();
        self.table(class, &columns, |page| {
            page.inside("tbody", &[], |page| {
                let of_cells = table.rows.iter().filter_map(|row| match row {
                    Row::Cells(cells) => Some(cells),
                    // Lines across are for terminals; no table with remarks is shown by this.
                    Row::Rule | Row::Note(_) => None,
                });
                for (number, cells) in of_cells.enumerate() {
                    page.inside("tr", &[], |page| page.same_row(table, number, cells, &first));
                }
            });
        });
    }

    fn same_row(&mut self, table: &Table, number: usize, cells: &[Span], first: &impl Fn(&mut Html, usize, &Span)) {
        for (at, (cell, (_, align))) in cells.iter().zip(&table.columns).enumerate() {
            match (at, align) {
                (0, _) => self.inside("th", &[("scope", "row")], |page| first(page, number, cell)),
                (_, Align::Left) => self.inside("td", &[], |page| page.span(cell)),
                (_, Align::Right) => self.inside("td", &[("class", "n")], |page| page.span(cell)),
            }
        }
    }

    /// A piece of the report in text, as it stands out there.
    pub(super) fn span(&mut self, span: &Span) {
        match class_of(span.style()) {
            "" => self.text(span.text()),
            class => self.element("span", &[("class", class)], span.text()),
        }
    }

    /// A paragraph of what is said in the report in text.
    pub(super) fn said(&mut self, body: &Body) {
        match body {
            Body::Text(text, style) => self.element("p", &[("class", class_of(*style))], text),
            Body::Line(line) => self.inside("p", &[("class", "dim")], |page| page.line(line)),
        }
    }

    fn line(&mut self, line: &Line) {
        line.spans().iter().for_each(|span| self.span(span));
    }

    /// JSON for the script. No byte of it can end the element or begin a comment.
    pub(super) fn data(&mut self, kind: &str, value: &Value) {
        self.open("script", &[("type", "application/json"), ("data-kind", kind)]);
        self.0.push_str(&harmless_json(value));
        self.close("script");
    }
}

fn class_of(style: Style) -> &'static str {
    match style {
        Style::Bold => "strong",
        Style::Dim => "dim",
        Style::Warning => "warning",
        Style::Good => "good",
        Style::Plain | Style::User | Style::Kernel | Style::Blocked | Style::Ready | Style::Shape => "",
    }
}

/// Marks of direction and control characters are written out, so that they are seen and do nothing.
fn markup_free(text: &str) -> String {
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

/// In JSON these characters can only stand inside of texts, where they may as well be written as numbers.
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
