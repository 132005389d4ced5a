//! SHOW: from an explained recording to something to read.
//!
//! Pure: a recording in, a string out. No clock, no file, no terminal: whoever prints says how wide the terminal is and
//! whether it shows colours, so the same recording always gives the same report.
//!
//! | module | what it knows |
//! |---|---|
//! | [`text`](fn@text) | the report, one file a section, printed for a terminal |
//! | [`markdown`](fn@markdown) | the same report for GitHub |
//! | [`csv`](fn@csv) | one table, one file a table |
//! | [`hyperfine`](fn@hyperfine) | times as hyperfine exports them |
//! | `change`, `flags`, `names`, `rows` | the words for a difference, for odd runs, for the sides of a comparison, for a row of a ledger |
//! | `line` | styled pieces of text, and that nothing from a recording can move the cursor |
//! | `table` | columns that line up |
//! | `units` | how times, shares and sizes are written |

mod change;
mod csv;
mod flags;
mod hyperfine;
mod line;
mod markdown;
mod names;
mod rows;
mod section;
mod table;
mod text;
mod units;

pub use self::csv::csv;
pub use hyperfine::hyperfine;
pub use line::{cut, escaped};
pub use markdown::markdown;
pub use section::{Section, UnknownSection};
pub use text::{TextOptions, text};

use inodyne_model::recording::Recording;

/// The recording as plain JSON, indented.
pub fn json(recording: &Recording) -> String {
    // Plain data with string keys: there is nothing in it that JSON cannot say.
    let mut text = serde_json::to_string_pretty(recording).expect("a recording is plain data");
    text.push('\n');
    text
}
