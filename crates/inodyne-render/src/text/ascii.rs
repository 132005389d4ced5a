//! Reports for terminals that show nothing but ASCII: each sign that reports are drawn with is replaced by one of the same width, so
//! columns stay where they are. Names from outside are not changed otherwise.

/// The text with the signs of reports in ASCII.
pub fn ascii(text: &str) -> String {
    text.chars().map(similar).collect()
}

fn similar(sign: char) -> char {
    match sign {
        // Bars, whose last column may be partial; and columns, from low to high.
        '█' | '▉' | '▊' | '▋' | '▌' => '#',
        '▍' | '▎' | '▏' | '▄' => '-',
        '▁' => '_',
        '▂' => '.',
        '▃' => ':',
        '▅' => '=',
        '▆' => '+',
        '▇' => '*',
        '·' | '–' | '—' | '−' | '─' => '-',
        '…' => '~',
        '›' | '→' => '>',
        '←' | '‹' => '<',
        '×' => 'x',
        'µ' | 'μ' => 'u',
        '\u{a0}' => ' ',
        '’' | '‘' => '\'',
        '“' | '”' => '"',
        '²' | '₂' => '2',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use crate::TextOptions;

    #[test]
    fn a_report_needs_nothing_but_ascii_and_keeps_its_columns() {
        let recording = crate::text::tests::explained(inodyne_model::sample::find_recording());
        let options = TextOptions { verbose: true, ..TextOptions::default() };
        let usual = crate::text(&recording, &options);
        let plain = crate::text(&recording, &TextOptions { ascii: true, ..options });
        assert!(!usual.is_ascii() && plain.is_ascii(), "{plain}");
        for (usual, plain) in usual.lines().zip(plain.lines()) {
            assert_eq!(usual.width(), plain.width(), "{plain}");
        }
    }
}
