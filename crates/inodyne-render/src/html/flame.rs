//! The wall-clock flame graph: stacks on a CPU and off it merged into a tree, which `page.js` draws.
//!
//! The tree is a list in depth-first order: for each node its depth, its name, what it is, and its own time (without that of
//! its children) with its state. Nodes beyond the largest, and those that no screen could show,
//! are summed up with their siblings, which keeps a page small; the sum stays what it was.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::observed::ROOT;
use inodyne_model::trace::Trace;
use serde_json::{Value, json};

use super::builder::Html;
use super::colours::{self, LEGEND};
use crate::profile::View;
use crate::profile::weighted::{Named, Part, Weighted, weighted};
use crate::report::state::State;

/// Nodes narrower than this part of the whole are summed up.
const SMALL: f64 = 1.0 / 20_000.0;
/// Nodes of a tree at most.
const MOST_NODES: usize = 40_000;

/// A thread that waits for children for more than this part of its life is not shown first.
const MOSTLY: f64 = 0.5;

pub(super) fn show(page: &mut Html, trace: &Trace) {
    let stacks = weighted(trace, View::Wall);
    if stacks.is_empty() {
        return;
    }
    let first: Vec<&Weighted<'_>> = stacks.iter().filter(|stack| stack.time.thread == ROOT).collect();
    let mut names = Names::default();
    let mut trees = vec![tree("the command's first thread".to_owned(), first.iter().copied(), &mut names)];
    if first.len() < stacks.len() {
        let label = format!("all {} threads, their lives summed", Grouped(trace.threads.len() as u64));
        trees.push(tree(label, stacks.iter(), &mut names));
    }
    // A shell that only waits for others has nothing to say.
    let sum = |of: &dyn Fn(&Weighted<'_>) -> bool| first.iter().filter(|s| of(s)).map(|s| s.ns()).sum::<Nanos>();
    let waited = sum(&|stack| stack.state == State::Blocked(Cause::Child));
    if waited.share_of(sum(&|_| true)) > MOSTLY || first.is_empty() {
        trees.reverse();
    }
    page.element("h3", &[], "Wall-clock flame graph");
    page.element(
        "p",
        &[("class", "dim")],
        "Widths are time, on a CPU and off it; colours say what the time below was. Time on a CPU is that of the ledger, \
         divided by samples; waits are as they were timed. The order from left to right means nothing.",
    );
    page.inside("div", &[("class", "widget flame")], |page| {
        page.data("flame", &json!({ "names": names.0, "legend": LEGEND, "trees": trees }));
        page.element("p", &[("class", "noscript")], "The flame graph needs scripts, which are switched off here.");
    });
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

/// A node, told from its siblings by its name and by what it is.
#[derive(Default)]
struct Node {
    /// With the children.
    ns: Nanos,
    /// Without, by class of colour.
    own: BTreeMap<&'static str, Nanos>,
    children: BTreeMap<Named, Node>,
}

fn tree<'a>(label: String, stacks: impl Iterator<Item = &'a Weighted<'a>>, names: &mut Names) -> Value {
    let mut root = Node::default();
    for stack in stacks {
        root.ns += stack.ns();
        let mut node = &mut root;
        for frame in &stack.frames {
            node = node.children.entry(frame.clone()).or_default();
            node.ns += stack.ns();
        }
        *node.own.entry(colours::of_state(stack.state)).or_default() += stack.ns();
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
            Part::State => 4,
        };
        let mut own = node.own.clone();
        let small = |child: &Node| child.ns < self.least;
        for child in node.children.values().filter(|child| small(child)) {
            child.sum_into(&mut own);
        }
        // A node has one state; where there are several, the others are children without functions.
        let mut of_class = own.into_iter();
        let (class, ns) = of_class.next().unwrap_or(("unexplained", Nanos::ZERO));
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

    fn row(&mut self, depth: usize, name: usize, part: u8, class: &str, ns: Nanos) {
        self.depth.push(depth);
        self.name.push(name);
        self.part.push(part);
        self.class.push(LEGEND.iter().position(|(known, _)| *known == class).unwrap_or(LEGEND.len() - 1));
        self.ns.push(ns.0);
    }
}

impl Node {
    fn sizes(&self, all: &mut Vec<Nanos>) {
        all.push(self.ns);
        self.children.values().for_each(|child| child.sizes(all));
    }

    fn sum_into(&self, sums: &mut BTreeMap<&'static str, Nanos>) {
        for (class, ns) in &self.own {
            *sums.entry(class).or_default() += *ns;
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
