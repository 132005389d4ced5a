//! A documentation page in a terminal: the small part of Markdown that these pages use, wrapped to a width. Headings are bold if the
//! output is a terminal (`anstream` removes the sequences elsewhere).

use unicode_width::UnicodeWidthStr;

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";
/// Columns between those of a table.
const GAP: usize = 2;

/// A heading, with the end of its line.
pub fn heading(text: &str) -> String {
    format!("{BOLD}{text}{PLAIN}\n")
}

/// The page.
pub fn rendered(markdown: &str, width: usize) -> String {
    let mut page = Page { width, out: String::new(), paragraph: Paragraph::default(), table: Vec::new() };
    let mut is_code = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            page.end();
            is_code = !is_code;
        } else if is_code {
            page.out += &format!("    {line}\n");
        } else {
            page.line(line);
        }
    }
    page.end();
    page.out
}

/// Text broken at spaces: the first line begins with `first`, the others with `others`.
pub fn wrapped(text: &str, first: &str, others: &str, width: usize) -> String {
    let mut out = String::from(first);
    let (mut used, mut is_begun) = (first.width(), false);
    for word in text.split_whitespace() {
        if is_begun && used + 1 + word.width() > width {
            out += "\n";
            out += others;
            used = others.width();
        } else if is_begun {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += word.width();
        is_begun = true;
    }
    out + "\n"
}

/// What has been printed, and what has not yet because its end is not known.
struct Page {
    width: usize,
    out: String,
    paragraph: Paragraph,
    table: Vec<Vec<String>>,
}

/// Lines that belong together.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// What comes before the first line; the others are indented to match.
    lead: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        let text = line.trim_start();
        if text.is_empty() {
            self.end();
            self.gap();
        } else if let Some(title) = text.strip_prefix('#') {
            self.end();
            self.gap();
            self.out += &heading(&inline(title.trim_start_matches('#').trim()));
        } else if text.starts_with('|') {
            self.paragraph_ends();
            self.row(text);
        } else if let Some((lead, item)) = listed(text) {
            self.end();
            self.paragraph = Paragraph { text: item.to_owned(), lead: format!("  {lead} ") };
        } else {
            self.paragraph.text += " ";
            self.paragraph.text += text;
        }
    }

    /// A blank line, but never two in a row, and none at the beginning.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn row(&mut self, line: &str) {
        let cells = line.trim().trim_matches('|').split('|').map(|cell| inline(cell.trim()));
        let cells: Vec<String> = cells.collect();
        // Below the head.
        let is_rule = cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')));
        if !is_rule || cells.iter().all(String::is_empty) {
            self.table.push(cells);
        }
    }

    fn end(&mut self) {
        self.paragraph_ends();
        let rows = std::mem::take(&mut self.table);
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or_default()).collect();
        let fits = widths.iter().map(|width| width + GAP).sum::<usize>() <= self.width;
        for row in rows.iter().filter(|row| row.iter().any(|cell| !cell.is_empty())) {
            if fits {
                let cells = row.iter().zip(&widths).map(|(cell, width)| {
                    let space = width - cell.width() + GAP;
                    format!("{cell}{}", " ".repeat(space))
                });
                let line: String = cells.collect();
                self.out += &format!("  {}\n", line.trim_end());
            } else {
                let (first, others) =
                    row.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
                self.out += &wrapped(&format!("{first}: {}", others.join(", ")), "  ", "    ", self.width);
            }
        }
    }

    fn paragraph_ends(&mut self) {
        let Paragraph { text, lead } = std::mem::take(&mut self.paragraph);
        if !text.is_empty() {
            let others = " ".repeat(lead.width());
            self.out += &wrapped(&inline(&text), &lead, &others, self.width);
        }
    }
}

/// The marker of a list item, and the item.
fn listed(line: &str) -> Option<(String, &str)> {
    if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some(("-".to_owned(), item));
    }
    let (number, item) = line.split_once(". ")?;
    (!number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())).then(|| (format!("{number}."), item))
}

/// Without emphasis markers, and with links reduced to their text.
fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('[') {
        let after = &rest[begin + 1..];
        let link = after.find("](").and_then(|end| Some((&after[..end], after[end..].find(')')? + end + 1)));
        match link.filter(|(words, _)| !words.contains(']')) {
            Some((words, end)) => {
                out += &rest[..begin];
                out += words;
                rest = &after[end..];
            }
            None => {
                out += &rest[..=begin];
                rest = after;
            }
        }
    }
    (out + rest).replace("**", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_legible_in_a_terminal() {
        let page = "# word\n\n**What** it [says](other.md),\nin two lines [0, 1].\n\n## List\n- one `a b` that is\n  long\n- two\n\n\
                    ```\nx =   1\n```\n\n| a | b |\n|---|---|\n| one | 2 |\n| t | wide one |\n";
        let shown = rendered(page, 30);
        let plain = shown.replace(BOLD, "").replace(PLAIN, "");
        assert_eq!(
            plain,
            "word\n\nWhat it says, in two lines [0,\n1].\n\nList\n  - one `a b` that is long\n  - two\n\n    x =   1\n\n  \
             a    b\n  one  2\n  t    wide one\n"
        );
        assert!(shown.starts_with("\x1b[1mword\x1b[0m\n"));
    }

    #[test]
    fn a_table_that_is_too_wide_becomes_lines() {
        let shown = rendered("| a | b |\n|---|---|\n| name | some words that do not fit |\n", 20);
        assert_eq!(shown, "  a: b\n  name: some words\n    that do not fit\n");
    }

    #[test]
    fn no_line_of_a_page_is_too_wide_but_code_and_long_words() {
        for page in crate::explain::pages::all() {
            let shown = rendered(page, 80).replace(BOLD, "").replace(PLAIN, "");
            for line in shown.lines().filter(|line| !line.starts_with("    ")) {
                assert!(line.width() <= 80, "{line}");
            }
        }
    }
}
