//! Draws a card: a recording in one picture that needs nothing else, as SVG. What it says is decided in `report/card.rs`.

use std::fmt::Write;

use inodyne_model::recording::Recording;

use crate::colours::{of_state, written};
use crate::html::markup_free;
use crate::line::{cut, escaped, wrapped};
use crate::report::card::{self, Bar, Card};

/// Sizes in pixels; lengths of text in characters that fit on a line in a wide font.
const WIDTH: f64 = 800.0;
const MARGIN: f64 = 28.0;
const INNER: f64 = WIDTH - 2.0 * MARGIN;
const TITLE_FITS: usize = 60;
const TEXT_FITS: usize = 92;
const ROW_FITS: usize = 66;
const BAR: f64 = 26.0;
/// Narrower pieces of a bar would be invisible.
const NARROWEST: f64 = 0.4;

/// Why there is no card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a card is of a traced run, and there is none in this recording")]
pub struct NoCard;

/// A recording in one picture: what ran, how long, why, and where the time went.
///
/// # Errors
/// Nothing was traced.
pub fn card(recording: &Recording) -> Result<String, NoCard> {
    let said = card::of(recording).ok_or(NoCard)?;
    let mut drawing = Drawing { svg: String::new(), y: MARGIN };
    drawing.card(&said, &recording.program_version);
    let height = drawing.y + MARGIN / 2.0;
    let title = markup_free(&said.title);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" font-family=\"system-ui, 'DejaVu Sans', Arial, sans-serif\">\n<title>{title}</title>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\" fill=\"#ffffff\" stroke=\"#c8ccd2\"/>\n{}</svg>\n",
        WIDTH - 1.0,
        height - 1.0,
        drawing.svg
    ))
}

/// What has been drawn so far, and where the next line begins.
struct Drawing {
    svg: String,
    y: f64,
}

/// How a line of text looks.
#[derive(Clone, Copy)]
struct Look {
    size: f64,
    colour: &'static str,
    bold: bool,
}

const TITLE: Look = Look { size: 17.0, colour: "#1c2430", bold: true };
const LARGE: Look = Look { size: 30.0, colour: "#1c2430", bold: true };
const VERDICT: Look = Look { size: 19.0, colour: "#1c2430", bold: true };
const GOOD: Look = Look { size: 17.0, colour: "#1d6b34", bold: false };
const PLAIN: Look = Look { size: 15.0, colour: "#1c2430", bold: false };
const DIM: Look = Look { size: 13.0, colour: "#5a6472", bold: false };

impl Drawing {
    fn card(&mut self, said: &Card, version: &str) {
        self.line(&cut(&escaped(&said.title), TITLE_FITS), TITLE);
        if !said.place.is_empty() {
            self.line(&cut(&escaped(&said.place), TEXT_FITS), DIM);
        }
        match said.verdicts.as_slice() {
            [(time, likely)] if said.bars.len() == 1 => {
                self.line(time, LARGE);
                if !likely.is_empty() {
                    self.line(likely, GOOD);
                }
            }
            verdicts => {
                for (sentence, facts) in verdicts {
                    self.line(&cut(sentence, TITLE_FITS), VERDICT);
                    self.line(facts, DIM);
                }
            }
        }
        for line in wrapped(&escaped(&said.reason), TEXT_FITS).iter().filter(|line| !line.is_empty()) {
            self.line(line, PLAIN);
        }
        self.y += 6.0;
        said.bars.iter().for_each(|bar| self.bar(bar));
        if !said.others.is_empty() {
            self.line(&said.others, DIM);
        }
        for (state, words, right) in &said.legend {
            let baseline = self.y + PLAIN.size;
            self.rectangle(MARGIN, self.y + 3.0, 12.0, 12.0, &written(of_state(*state).light));
            self.text(MARGIN + 20.0, baseline, &cut(&escaped(words), ROW_FITS), PLAIN, "start");
            self.text(WIDTH - MARGIN, baseline, right, PLAIN, "end");
            self.y += PLAIN.size * 1.5;
        }
        self.y += 6.0;
        let baseline = self.y + DIM.size;
        let trust = said.doubts.first().unwrap_or(&said.trust);
        self.text(MARGIN, baseline, &cut(&escaped(trust), TEXT_FITS - 12), DIM, "start");
        self.text(WIDTH - MARGIN, baseline, &format!("inodyne {version}"), DIM, "end");
        self.y += DIM.size * 1.5;
    }

    /// A case: its name and time above its bar.
    fn bar(&mut self, bar: &Bar) {
        if !bar.name.is_empty() {
            let baseline = self.y + PLAIN.size;
            self.text(MARGIN, baseline, &cut(&escaped(&bar.name), TITLE_FITS), PLAIN, "start");
            self.text(WIDTH - MARGIN, baseline, &bar.time, PLAIN, "end");
            self.y += PLAIN.size * 1.5;
        }
        let mut x = MARGIN;
        for (state, share) in &bar.parts {
            let width = share * INNER;
            if width >= NARROWEST {
                self.rectangle(x, self.y, width, BAR, &written(of_state(*state).light));
            }
            x += width;
        }
        self.y += BAR + 12.0;
    }

    fn line(&mut self, text: &str, look: Look) {
        self.text(MARGIN, self.y + look.size, text, look, "start");
        self.y += look.size * 1.45;
    }

    fn text(&mut self, x: f64, y: f64, text: &str, look: Look, anchor: &str) {
        let Look { size, colour, bold } = look;
        let weight = if bold { "600" } else { "400" };
        let text = markup_free(text);
        // Writing into a string cannot fail.
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" fill=\"{colour}\" \
             text-anchor=\"{anchor}\" xml:space=\"preserve\">{text}</text>"
        );
    }

    fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        let _ = writeln!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height}\" fill=\"{colour}\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::place::Place;
    use inodyne_model::sample;
    use inodyne_model::trace::Trace;

    use super::*;

    fn explained(mut recording: Recording) -> Recording {
        inodyne_analyse::explain(&mut recording);
        recording
    }

    #[test]
    fn a_bar_is_as_long_as_its_time_and_its_parts_sum_to_it() {
        for recording in [sample::find_recording(), sample::pipeline_recording(), sample::window_recording()] {
            let recording = explained(recording);
            let said = card::of(&recording).expect("it was traced");
            let sums: Vec<f64> = said.bars.iter().map(|bar| bar.parts.iter().map(|(_, part)| part).sum()).collect();
            let longest = sums.iter().copied().fold(0.0, f64::max);
            // The residual is included, exactly once.
            assert!((longest - 1.0).abs() < 1e-9, "{sums:?}");
            assert!(said.legend.len() <= 5 && !said.legend.is_empty());
        }
    }

    #[test]
    fn of_many_cases_it_says_how_many_have_no_bar_and_what_speaks_most_against_them() {
        let mut recording = sample::find_recording();
        let first = recording.traces[0].clone();
        recording.traces.truncate(1);
        recording.places.truncate(1);
        for place in 1..9 {
            recording.places.push(Place { label: format!("place {place}"), ..recording.places[0].clone() });
            recording.traces.push(Trace { place, ..first.clone() });
        }
        recording.traces[7].lost.records = 3;
        let said = card::of(&explained(recording)).expect("it was traced");
        assert_eq!((said.bars.len(), said.others.as_str()), (6, "and 3 more cases"));
        assert!(!said.trust.contains("no events lost"), "{}", said.trust);
    }

    #[test]
    fn nothing_of_a_recording_becomes_markup() {
        let mut recording = explained(sample::pipeline_recording());
        recording.commands[0].label = "cat <script>&\u{202e}".to_owned();
        let svg = card(&recording).expect("it was traced");
        assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;&amp;"), "{svg}");
        assert!(!svg.contains('\u{202e}') && svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn without_a_trace_there_is_none() {
        assert_eq!(card(&sample::empty()), Err(NoCard));
    }
}
