//! SHOW: from an explained recording to something to read.
//!
//! Pure: a recording in, a string (or the bytes of a file) out. No clock, no file, no terminal: whoever prints says how
//! wide the terminal is and whether it shows colours, so the same recording always gives the same report.
//!
//! | module | what it knows |
//! |---|---|
//! | [`text`](fn@text) | the report, one file a section, printed for a terminal |
//! | [`markdown`](fn@markdown) | the same report for GitHub |
//! | [`csv`](fn@csv) | one table, one file a table |
//! | [`hyperfine`](fn@hyperfine) | times as hyperfine exports them |
//! | `change`, `flags`, `names`, `rows` | the words for a difference, for odd runs, for the sides of a comparison, for a row of a ledger |
//! | [`html`](fn@html) | the report as a page for a browser |
//! | `profile` | stacks and timeline in the formats of other programs, one file a format |
//! | `timeline` | the intervals of a trace, with their causes |
//! | `line` | styled pieces of text, and that nothing from a recording can move the cursor |
//! | `table` | columns that line up |
//! | `units` | how times, shares and sizes are written |

mod change;
mod csv;
mod flags;
mod html;
mod hyperfine;
mod line;
mod markdown;
mod names;
mod profile;
mod rows;
mod section;
mod table;
mod text;
mod timeline;
mod units;

pub use self::csv::csv;
pub use html::html;
pub use hyperfine::hyperfine;
pub use line::{cut, escaped};
pub use markdown::markdown;
pub use profile::{
    NoFlameGraph, Traced, UnknownView, View, firefox, flame_graph, flame_graph_difference, folded, folded_difference,
    perfetto, pprof, speedscope,
};
pub use section::{Section, UnknownSection};
pub use text::{TextOptions, text};
pub use units::duration_beside;

use inodyne_model::recording::Recording;

/// The recording as plain JSON, indented.
pub fn json(recording: &Recording) -> String {
    // Plain data with string keys: there is nothing in it that JSON cannot say.
    let mut text = serde_json::to_string_pretty(recording).expect("a recording is plain data");
    text.push('\n');
    text
}
