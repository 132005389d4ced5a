//! SHOW: from an explained recording to something to read.
//!
//! Pure: a recording in, a string (or the bytes of a file) out. No clock, no file, no terminal: the caller says how
//! wide the terminal is and whether it shows colours, so the same recording always gives the same report.
//!
//! | module | what it knows |
//! |---|---|
//! | `report` | what is said, in which order, and what need not be shown: the same for all formats, one file per section |
//! | [`text`](fn@text) | prints it for a terminal |
//! | [`markdown`](fn@markdown) | prints it for GitHub |
//! | [`html`](fn@html) | prints it as a page for a browser, with pictures |
//! | [`csv`](fn@csv), [`json`](fn@json) | rows and recordings for programs |
//! | `difference`, `junit` | the difference of two recordings, in all forms |
//! | [`card`](fn@card) | a recording in one picture |
//! | [`hyperfine`](fn@hyperfine) | times as hyperfine exports them |
//! | `openmetrics` | counters over windows, for a monitoring system |
//! | `profile` | stacks and timeline in the formats of other programs, one file per format |
//! | `disk` | what a disk can do, in words |
//! | `colours` | which colour stands for what |
//! | `process` | the processes of a trace as a tree, and what they are called |
//! | `timeline` | the intervals of a trace, with their causes |
//! | `line` | styled pieces of text, in which nothing from a recording can move the cursor |
//! | `units` | how times, shares and sizes are written |

mod card;
mod colours;
mod csv;
mod difference;
mod disk;
mod html;
mod hyperfine;
mod json;
mod junit;
mod line;
mod markdown;
mod openmetrics;
mod process;
mod profile;
mod report;
mod text;
mod timeline;
mod units;

pub use self::card::{NoCard, card};
pub use self::csv::csv;
pub use difference::{difference_html, difference_json, difference_markdown, difference_text};
pub use disk::disk_limits;
pub use html::html;
pub use hyperfine::hyperfine;
pub use json::{json, json_section};
pub use junit::difference_junit;
pub use line::{cut, escaped};
pub use markdown::markdown;
pub use openmetrics::Metrics;
pub use profile::{
    NoFlameGraph, Traced, UnknownView, View, firefox, flame_graph, flame_graph_difference, folded, folded_difference,
    perfetto, pprof, speedscope,
};
pub use report::recordings::gate_in_words;
pub use report::section::{Section, UnknownSection};
pub use report::{pairs, row_words, saving, words_of_row};
pub use text::{TextOptions, ascii, text};
pub use units::{bytes, duration_beside};
