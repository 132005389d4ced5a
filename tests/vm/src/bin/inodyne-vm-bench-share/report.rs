//! The tables, in Markdown: medians with their ranges, ratios, and requests.

use std::fmt::{self, Display, Formatter};

use crate::places::{PLACES, SHARE, Servers};
use crate::requests::Asked;
use crate::{Options, WORK};

/// Everything that was measured, by place.
pub struct Report {
    head: String,
    /// The seconds of each piece of work, a row for each round.
    pub times: Vec<Vec<Vec<f64>>>,
    /// The requests of each piece of work.
    pub requests: Vec<Vec<Asked>>,
}

impl Report {
    /// With nothing in it yet.
    pub fn new(options: &Options, kernel: &str, servers: &Servers) -> Report {
        let files = options.directories * options.files;
        let head = format!(
            "Linux {kernel} in the guest; {files} files in {} directories; {} rounds; {}.",
            options.directories,
            options.rounds,
            servers.versions.join(", ")
        );
        Report { head, times: vec![Vec::new(); PLACES.len()], requests: PLACES.iter().map(|_| Vec::new()).collect() }
    }

    /// Least, median and most of a piece of work in a place.
    fn spread(&self, place: usize, work: usize) -> Option<[f64; 3]> {
        let mut all: Vec<f64> = self.times[place].iter().map(|row| row[work]).collect();
        all.sort_by(f64::total_cmp);
        let middle = all.len() / 2;
        let median = if all.len() % 2 == 1 { *all.get(middle)? } else { (all.get(middle)? + all[middle - 1]) / 2.0 };
        Some([all[0], median, *all.last()?])
    }

    /// A table with a column for each place that has anything.
    fn table(
        &self,
        out: &mut Formatter<'_>,
        title: &str,
        has: impl Fn(usize) -> bool,
        cell: impl Fn(usize, usize) -> Option<String>,
    ) -> fmt::Result {
        let places: Vec<usize> = (0..PLACES.len()).filter(|place| has(*place)).collect();
        if places.is_empty() {
            return Ok(());
        }
        write!(out, "\n| {title} |")?;
        places.iter().try_for_each(|place| write!(out, " {} |", PLACES[*place].name))?;
        writeln!(out, "\n|---|{}", "---|".repeat(places.len()))?;
        for (number, (work, _)) in WORK.iter().enumerate() {
            write!(out, "| {work} |")?;
            places
                .iter()
                .try_for_each(|place| write!(out, " {} |", cell(*place, number).unwrap_or_else(|| "-".into())))?;
            writeln!(out)?;
        }
        Ok(())
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.head)?;
        let is_timed = |place: usize| !self.times[place].is_empty();
        self.table(out, "seconds: median (least to most)", is_timed, |place, work| {
            let [least, median, most] = self.spread(place, work)?;
            Some(format!("{median:.2} ({least:.2} to {most:.2})"))
        })?;
        let is_other = |place: usize| is_timed(place) && is_timed(SHARE) && place != SHARE;
        self.table(out, "how many times the share's median", is_other, |place, work| {
            let [_, share, _] = self.spread(SHARE, work)?;
            let [_, median, _] = self.spread(place, work)?;
            Some(format!("{:.2}", median / share))
        })?;
        let is_counted = |place: usize| !self.requests[place].is_empty();
        self.table(out, "requests", is_counted, |place, work| {
            let asked = self.requests[place].get(work)?;
            let all = asked.requests.values().sum::<u64>();
            Some(asked.at_host.map_or_else(|| all.to_string(), |at_host| format!("{all}, {at_host} at the host")))
        })?;
        for place in (0..PLACES.len()).filter(|place| is_counted(*place)) {
            writeln!(out, "\nRequests of {}:\n", PLACES[place].name)?;
            for ((work, _), asked) in WORK.iter().zip(&self.requests[place]) {
                let list: Vec<String> = asked.requests.iter().map(|(name, count)| format!("{name} {count}")).collect();
                writeln!(out, "- {work}: {}", list.join(", "))?;
            }
        }
        Ok(())
    }
}
