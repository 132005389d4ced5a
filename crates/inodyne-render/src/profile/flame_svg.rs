//! Flame graphs as pictures, drawn by inferno; this module decides what is drawn, and in which colours.
//!
//! Colours say what a frame is: green is user mode, pale orange a system call, orange the kernel, and the others are waiting, by cause,
//! as on pages. A difference has inferno's own colours: red took longer than before, blue less.

use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{Options, from_lines};
use inodyne_model::Nanos;

use super::folded::{folded, folded_difference, folded_name};
use super::weighted::{Part, weighted};
use super::{Traced, View};
use crate::colours::{Rgb, of_state};
use crate::report::state::State;
use crate::units::duration;

/// A system call, where it enters the kernel.
const CALL: Rgb = [255, 201, 157];

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFlameGraph {
    /// There is nothing to draw.
    #[error("nothing took any time in this view: there is no flame graph to draw")]
    Empty,
    /// The times of a damaged recording.
    #[error("the times in this recording do not make sense: their sum exceeds 292 years")]
    TooLong,
}

/// A flame graph of a trace as SVG.
///
/// # Errors
/// Nothing took any time.
pub fn flame_graph(traced: &Traced<'_>, view: View) -> Result<String, NoFlameGraph> {
    let stacks = weighted(traced.trace, view);
    let total = stacks.iter().map(|stack| stack.ns()).sum();
    let mut colours = PaletteMap::default();
    for stack in &stacks {
        for frame in &stack.frames {
            colours.insert(folded_name(&frame.name), colour(frame.part, stack.state));
        }
    }
    let (what, state) = match view {
        View::CriticalPath => ("Critical path", "the wall-clock time, by what the end of the command had to wait for"),
        View::Wall => ("All threads", "their lives, summed"),
        View::OnCpu => ("On a CPU", "CPU time of all threads"),
        View::OffCpu => ("Off the CPU", "blocked or ready, all threads"),
    };
    let mut options = Options::default();
    options.title = format!("{what}: {}", traced.title());
    options.subtitle = Some(format!("{}: {state}", duration(total)));
    options.palette_map = Some(&mut colours);
    draw(options, &folded(traced, view), total)
}

/// A flame graph of `after`, coloured by what changed since `before`.
///
/// # Errors
/// Nothing took any time.
pub fn flame_graph_difference(before: &Traced<'_>, after: &Traced<'_>, view: View) -> Result<String, NoFlameGraph> {
    let total = |traced: &Traced<'_>| weighted(traced.trace, view).iter().map(|stack| stack.ns()).sum::<Nanos>();
    let (was, is) = (total(before), total(after));
    let mut options = Options::default();
    options.title = format!("{} since {}", after.title(), before.title());
    options.subtitle =
        Some(format!("{} instead of {}; red: longer than before, blue: shorter", duration(is), duration(was)));
    draw(options, &folded_difference(before, after, view), was.max(is))
}

fn draw(mut options: Options<'_>, lines: &str, total: Nanos) -> Result<String, NoFlameGraph> {
    if i64::try_from(total.0).is_err() {
        return Err(NoFlameGraph::TooLong);
    }
    options.count_name = "ns".to_owned();
    options.deterministic = true;
    options.image_width = Some(1200);
    let mut svg = Vec::new();
    from_lines(&mut options, lines.lines(), &mut svg).map_err(|_| NoFlameGraph::Empty)?;
    Ok(String::from_utf8_lossy(&svg).into_owned())
}

fn colour(part: Part, state: State) -> Color {
    let [r, g, b] = match part {
        Part::Command => [200, 200, 200],
        Part::Call => CALL,
        Part::User => of_state(State::User).light,
        Part::Kernel => of_state(State::Kernel).light,
        Part::State => of_state(state).light,
        Part::Waiting(cause) => of_state(State::Blocked(cause)).light,
    };
    Color { r, g, b }
}
