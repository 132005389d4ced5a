//! The flame graph: stacks on a CPU and off it merged into a tree, which `page.js` draws. The tree of the critical path comes first and
//! is as wide as the wall-clock time; the one of all threads can be selected.
//!
//! The tree is a list in depth-first order: for each node its depth, its name, what it is, and its own time (without that of
//! its children) with its state. Nodes that are not among the largest, or that no screen could show,
//! are merged with their siblings, which keeps a page small; the sum does not change.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::ledger;
use inodyne_model::observed::ROOT;
use inodyne_model::trace::Trace;
use serde_json::{Value, json};

use super::builder::Html;
use crate::colours;
use crate::profile::View;
use crate::profile::weighted::{Named, Part, Weighted, weighted};
use crate::report::state::State;

/// Nodes narrower than this part of the whole are merged.
const SMALL: f64 = 1.0 / 20_000.0;
/// The most nodes of a tree.
const MOST_NODES: usize = 40_000;
/// What is deeper belongs to the frame of this depth: a stack of a damaged recording may have any number of frames, and a tree takes stack
/// for each level.
const DEEPEST: usize = 512;

/// A thread that waits for children for more than this part of its life is not shown first.
const MOSTLY: f64 = 0.5;

pub(super) fn heading(trace: &Trace) -> &'static str {
    let has_path = trace.path.stacks.iter().any(|part| part.time.ns > Nanos::ZERO);
    if has_path { "Flame graph of the critical path" } else { "Flame graph" }
}

pub(super) fn show(page: &mut Html, trace: &Trace) {
    let stacks = weighted(trace, View::Wall);
    let path = weighted(trace, View::CriticalPath);
    if stacks.is_empty() && path.is_empty() {
        return;
    }
    let mut names = Names::default();
    let all_label = match trace.threads.len() {
        1 => "the life of the only thread".to_owned(),
        several => format!("all {} threads, their lives summed", Grouped(several as u64)),
    };
    let mut trees = Vec::new();
    if !path.is_empty() {
        trees.push(tree("critical path: the wall-clock time".to_owned(), path.iter(), &mut names));
    } else if trace.ledger.view != ledger::View::Window {
        trees.extend(of_first_thread(&stacks, &mut names));
    }
    if (trace.threads.len() > 1 && !stacks.is_empty()) || trees.is_empty() {
        trees.push(tree(all_label, stacks.iter(), &mut names));
    }
    if path.is_empty() && !first_thread_matters(&stacks) {
        trees.reverse();
    }
    let what = if path.is_empty() {
        "Widths are time, on a CPU and off it"
    } else {
        "Widths are wall-clock time: what the end of the command had to wait for, and inside of a wait what others did meanwhile"
    };
    let known = if trace.tracer.divides_calls() {
        "Time on a CPU is that of the ledger, divided by samples; waits are as they were timed."
    } else {
        "Whether a call ran or waited is not known."
    };
    let text =
        format!("{what}; colours say what the time below was. {known} The order from left to right means nothing.");
    page.element("p", &[("class", "dim")], &text);
    page.inside("div", &[("class", "widget flame")], |page| {
        page.data("flame", &json!({ "names": names.0, "legend": colours::legend(), "trees": trees }));
        page.element("p", &[("class", "noscript")], "The flame graph needs scripts, which are switched off here.");
    });
}

/// The tree of the command's first thread, if it has any time.
fn of_first_thread(stacks: &[Weighted<'_>], names: &mut Names) -> Option<Value> {
    let mut first = stacks.iter().filter(|stack| stack.time.thread == ROOT).peekable();
    first.peek()?;
    Some(tree("the command's first thread".to_owned(), first, names))
}

/// A shell that only waits for others tells a reader nothing.
fn first_thread_matters(stacks: &[Weighted<'_>]) -> bool {
    let first = || stacks.iter().filter(|stack| stack.time.thread == ROOT);
    let waits = |stack: &&Weighted<'_>| stack.state == State::Blocked(Cause::Child);
    let waited: Nanos = first().filter(waits).map(Weighted::ns).sum();
    waited.share_of(first().map(Weighted::ns).sum()) <= MOSTLY
}

/// Names by number.
#[derive(Default)]
struct Names(Vec<String>, BTreeMap<String, usize>);

impl Names {
    fn of(&mut self, name: &str) -> usize {
        if let Some(number) = self.1.get(name) {
            return *number;
        }
        self.0.push(name.to_owned());
        self.1.insert(name.to_owned(), self.0.len() - 1);
        self.0.len() - 1
    }
}

/// A node, distinguished from its siblings by its name and by what it is.
#[derive(Default)]
struct Node {
    /// Including the children.
    ns: Nanos,
    /// Excluding the children, by colour class.
    own: BTreeMap<usize, Nanos>,
    children: BTreeMap<Named, Node>,
}

fn tree<'a>(label: String, stacks: impl Iterator<Item = &'a Weighted<'a>>, names: &mut Names) -> Value {
    let mut root = Node::default();
    for stack in stacks {
        root.ns += stack.ns();
        let mut node = &mut root;
        for frame in stack.frames.iter().take(DEEPEST) {
            node = node.children.entry(frame.clone()).or_default();
            node.ns += stack.ns();
        }
        *node.own.entry(colours::number(stack.state)).or_default() += stack.ns();
    }
    let mut sizes = Vec::new();
    root.sizes(&mut sizes);
    sizes.sort_unstable_by_key(|ns| Reverse(*ns));
    let beyond = sizes.get(MOST_NODES).map_or(Nanos::ZERO, |ns| *ns + Nanos(1));
    let least = Nanos((root.ns.0 as f64 * SMALL) as u64).max(beyond);
    let mut list = List { least, ..List::default() };
    let whole = Named { part: Part::State, name: label.clone() };
    list.add(&whole, &root, 0, names);
    json!({
        "label": label, "depth": list.depth, "name": list.name, "part": list.part, "class": list.class, "ns": list.ns,
    })
}

/// The tree as columns.
#[derive(Default)]
struct List {
    least: Nanos,
    depth: Vec<usize>,
    name: Vec<usize>,
    part: Vec<u8>,
    class: Vec<usize>,
    ns: Vec<u64>,
}

impl List {
    fn add(&mut self, named: &Named, node: &Node, depth: usize, names: &mut Names) {
        let part = match named.part {
            Part::Command => 0,
            Part::User => 1,
            Part::Call => 2,
            Part::Kernel => 3,
            Part::Waiting(_) | Part::State => 4,
        };
        let mut own = node.own.clone();
        let small = |child: &Node| child.ns < self.least;
        for child in node.children.values().filter(|child| small(child)) {
            child.sum_into(&mut own);
        }
        // A node has one state; if there are several, the others become children without functions.
        let mut of_class = own.into_iter();
        let (class, ns) = of_class.next().unwrap_or((colours::number(State::Unexplained), Nanos::ZERO));
        self.row(depth, names.of(&named.name), part, class, ns);
        for (class, ns) in of_class {
            self.row(depth + 1, names.of("[smaller]"), 4, class, ns);
        }
        let mut large: Vec<_> = node.children.iter().filter(|(_, child)| child.ns >= self.least).collect();
        large.sort_by(|a, b| a.0.cmp(b.0));
        for (named, child) in large {
            self.add(named, child, depth + 1, names);
        }
    }

    fn row(&mut self, depth: usize, name: usize, part: u8, class: usize, ns: Nanos) {
        self.depth.push(depth);
        self.name.push(name);
        self.part.push(part);
        self.class.push(class);
        self.ns.push(ns.0);
    }
}

impl Node {
    fn sizes(&self, all: &mut Vec<Nanos>) {
        all.push(self.ns);
        self.children.values().for_each(|child| child.sizes(all));
    }

    fn sum_into(&self, sums: &mut BTreeMap<usize, Nanos>) {
        for (class, ns) in &self.own {
            *sums.entry(*class).or_default() += *ns;
        }
        for child in self.children.values() {
            child.sum_into(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;

    /// As only a damaged recording has it.
    #[test]
    fn a_stack_without_end_is_no_reason_to_run_out_of_stack() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let time = recording.traces[0].stacks.on_cpu[0].clone();
        let frame = Named { part: Part::User, name: "again".to_owned() };
        let deep = Weighted { frames: vec![frame; 200_000], state: State::User, time: &time };
        let drawn = tree("all".to_owned(), std::iter::once(&deep), &mut Names::default());
        let of = |key: &str| serde_json::from_value::<Vec<u64>>(drawn[key].clone()).unwrap();
        assert_eq!(of("depth").last(), Some(&(DEEPEST as u64)));
        assert_eq!(of("ns").iter().sum::<u64>(), time.ns.0);
    }

    #[test]
    fn the_tree_is_as_wide_as_the_lives() {
        for mut recording in [sample::find_recording(), sample::pipeline_recording()] {
            inodyne_analyse::explain(&mut recording);
            for trace in &recording.traces {
                let lives: Nanos = trace.threads.iter().map(|thread| thread.lifetime_ns).sum();
                let stacks = weighted(trace, View::Wall);
                let all = tree("all".to_owned(), stacks.iter(), &mut Names::default());
                let ns: Vec<u64> = serde_json::from_value(all["ns"].clone()).unwrap();
                assert_eq!(ns.iter().sum::<u64>(), lives.0);
            }
        }
    }
}
