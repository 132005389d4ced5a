//! Directories as areas: each as large as its part of the time, inside the one that contains it.
//!
//! Laid out so that the areas are as square as possible (Bruls, Huizing, van Wijk: "Squarified treemaps", VisSym 2000).

use super::builder::Html;
use crate::line::escaped;
use crate::report::directories::{Tree, joined};
use crate::units::{bytes, counted, duration, percent};

/// The picture is laid out as if it were this wide; its height is the one in `page.css`, in pixels.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 380.0;
/// The height of a directory's name, which is above its contents.
const LINE: f64 = 18.0;
/// The space around the contents of a directory.
const PADDING: f64 = 2.0;
/// Areas smaller than the first on either side are not drawn, and those narrower than the second have no name.
const SMALL: f64 = 8.0;
const NARROW: f64 = 36.0;
/// The deeper a directory, the darker it is, down to this depth: its name must stay readable.
const DARKEST: usize = 5;

/// An area, in units of the layout.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// A directory as it is drawn.
struct Tile<'t, 'a> {
    area: Area,
    depth: usize,
    /// Relative to the enclosing directory.
    name: String,
    path: String,
    tree: &'t Tree<'a>,
}

/// The directories of a tree.
pub(super) fn show(page: &mut Html, tree: &Tree<'_>) {
    let mut tiles = Vec::new();
    let (path, tree) = tree.branching("/".to_owned());
    let area = Area { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    lay_out(&mut tiles, Tile { area, depth: 0, name: path.clone(), path, tree });
    // The table says just as much about a single one.
    if tiles.len() < 3 {
        return;
    }
    let whole = tree.sum.wall_ns;
    page.element("p", &[("class", "dim")], "Directories by the wall-clock time of calls on the files in them");
    page.inside("div", &[("class", "treemap"), ("aria-hidden", "true")], |page| {
        for Tile { area, depth, name, path, tree } in &tiles {
            let sum = &tree.sum;
            let share = percent(sum.wall_ns.share_of(whole));
            let title = format!(
                "{}: {} ({share}), {}, {} read, {} written",
                escaped(path),
                duration(sum.wall_ns),
                counted(sum.files, "file", "files"),
                bytes(sum.read),
                bytes(sum.written)
            );
            let style = format!(
                "--depth:{};left:{:.2}%;top:{:.2}%;width:{:.2}%;height:{:.2}%",
                depth.min(&DARKEST),
                area.x / WIDTH * 100.0,
                area.y / HEIGHT * 100.0,
                area.width / WIDTH * 100.0,
                area.height / HEIGHT * 100.0,
            );
            let has_name = area.width >= NARROW && area.height >= LINE - 2.0;
            let name = if has_name { format!("{} {share}", escaped(name)) } else { String::new() };
            page.element("div", &[("style", &style), ("title", &title)], &name);
        }
    });
}

/// The directory, and those in it that are large enough to be seen.
fn lay_out<'t, 'a>(tiles: &mut Vec<Tile<'t, 'a>>, tile: Tile<'t, 'a>) {
    let Area { x, y, width, height } = tile.area;
    let inner = Area {
        x: x + PADDING,
        y: y + LINE,
        width: (width - 2.0 * PADDING).max(0.0),
        height: (height - LINE - PADDING).max(0.0),
    };
    let whole = tile.tree.sum.wall_ns;
    let below = tile.tree.below();
    let shares: Vec<f64> = below.iter().map(|(_, below)| below.sum.wall_ns.share_of(whole)).collect();
    let (path, depth) = (tile.path.clone(), tile.depth);
    tiles.push(tile);
    for ((name, tree), area) in below.into_iter().zip(squarified(inner, &shares)) {
        if area.width < SMALL || area.height < SMALL {
            continue;
        }
        let (name, tree) = tree.branching(name.to_owned());
        let path = joined(&path, &name);
        lay_out(tiles, Tile { area, depth: depth + 1, name, path, tree });
    }
}

/// An area for each share, from the largest share to the smallest; what they leave of the whole stays empty.
fn squarified(mut area: Area, shares: &[f64]) -> Vec<Area> {
    let scale = area.width * area.height;
    let mut areas = Vec::with_capacity(shares.len());
    let mut rest = shares;
    while !rest.is_empty() {
        // A row along the shorter side takes as many shares as make its areas squarer.
        let side = area.width.min(area.height);
        let mut count = 1;
        while count < rest.len() && worst(&rest[..=count], side, scale) <= worst(&rest[..count], side, scale) {
            count += 1;
        }
        let (row, after) = rest.split_at(count);
        let depth = (row.iter().sum::<f64>() * scale / side.max(f64::MIN_POSITIVE)).min(area.width.max(area.height));
        let is_column = area.width >= area.height;
        let mut along = 0.0;
        for share in row {
            let length = if depth > 0.0 { share * scale / depth } else { 0.0 };
            areas.push(match is_column {
                true => Area { x: area.x, y: area.y + along, width: depth, height: length },
                false => Area { x: area.x + along, y: area.y, width: length, height: depth },
            });
            along += length;
        }
        match is_column {
            true => (area.x, area.width) = (area.x + depth, area.width - depth),
            false => (area.y, area.height) = (area.y + depth, area.height - depth),
        }
        rest = after;
    }
    areas
}

/// How far from a square the worst area of a row along this side is.
fn worst(row: &[f64], side: f64, scale: f64) -> f64 {
    let sum = row.iter().sum::<f64>() * scale;
    let ratio = |share: &f64| {
        let area = share * scale;
        (side * side * area / (sum * sum)).max(sum * sum / (side * side * area))
    };
    row.iter().map(ratio).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use inodyne_model::random::Random;

    use super::*;

    const WHOLE: Area = Area { x: 10.0, y: 20.0, width: 600.0, height: 400.0 };

    fn overlap(a: &Area, b: &Area) -> f64 {
        let along = |from: f64, length: f64, other: f64, other_length: f64| {
            (from + length).min(other + other_length) - from.max(other)
        };
        let [x, y] = [along(a.x, a.width, b.x, b.width), along(a.y, a.height, b.y, b.height)];
        if x > 0.0 && y > 0.0 { x * y } else { 0.0 }
    }

    #[test]
    fn areas_are_as_large_as_their_shares_and_apart_from_each_other() {
        let mut random = Random::seeded(3);
        for count in 1..40 {
            let mut shares: Vec<f64> = (0..count).map(|_| 1.0 + random.below(1_000) as f64).collect();
            shares.sort_by(|a, b| b.total_cmp(a));
            // Part of the sum is the directory's own time.
            let sum: f64 = shares.iter().sum::<f64>() * 1.1;
            shares.iter_mut().for_each(|share| *share /= sum);
            let areas = squarified(WHOLE, &shares);
            assert_eq!(areas.len(), shares.len());
            for (at, (area, share)) in areas.iter().zip(&shares).enumerate() {
                let expected = share * WHOLE.width * WHOLE.height;
                assert!((area.width * area.height - expected).abs() < 1e-6 * expected, "{area:?} {share}");
                assert!((overlap(area, &WHOLE) - expected).abs() < 1e-6 * expected, "{area:?} reaches out");
                assert!(areas[..at].iter().all(|other| overlap(area, other) < 1e-6), "{areas:?}");
            }
        }
    }

    #[test]
    fn equal_shares_are_nearly_squares() {
        for area in squarified(WHOLE, &[1.0 / 6.0; 6]) {
            assert!((0.8..1.25).contains(&(area.width / area.height)), "{area:?}");
        }
    }

    #[test]
    fn nothing_has_no_area() {
        assert!(squarified(WHOLE, &[]).is_empty());
        let flat = squarified(Area { height: 0.0, ..WHOLE }, &[0.5, 0.0]);
        assert!(flat.iter().all(|area| area.width * area.height == 0.0), "{flat:?}");
        let none = squarified(WHOLE, &[0.0, 0.0]);
        assert!(
            none.iter().all(|area| [area.x, area.y, area.width, area.height].iter().all(|end| end.is_finite())),
            "{none:?}"
        );
    }
}
