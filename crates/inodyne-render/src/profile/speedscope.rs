//! Stacks for speedscope (<https://www.speedscope.app/file-format-schema.json>): a profile for each view, with weights in
//! nanoseconds.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::weighted::weighted;
use super::{Traced, View};

/// The views of a trace as one file.
pub fn speedscope(traced: &Traced<'_>, views: &[View]) -> String {
    let mut frames = Frames::default();
    let profiles: Vec<Value> = views.iter().map(|view| profile(traced, *view, &mut frames)).collect();
    let names: Vec<Value> = frames.names.iter().map(|name| json!({ "name": name })).collect();
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": traced.title(),
        "exporter": format!("inodyne {}", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": 0,
        "shared": { "frames": names },
        "profiles": profiles,
    });
    format!("{file}\n")
}

fn profile(traced: &Traced<'_>, view: View, frames: &mut Frames) -> Value {
    let mut stacks = weighted(traced.trace, view);
    // Stacks that have the most in common are next to each other, so that the eye sees the sum over equal frames.
    stacks.sort_by(|a, b| a.frames.cmp(&b.frames));
    let weights: Vec<u64> = stacks.iter().map(|stack| stack.ns().0).collect();
    let samples: Vec<Vec<usize>> =
        stacks.iter().map(|stack| stack.frames.iter().map(|frame| frames.index(&frame.name)).collect()).collect();
    json!({
        "type": "sampled",
        "name": format!("{view}: {}", traced.title()),
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": weights.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
        "samples": samples,
        "weights": weights,
    })
}

/// Names by number, in the order of their first use.
#[derive(Default)]
struct Frames {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Frames {
    fn index(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}
