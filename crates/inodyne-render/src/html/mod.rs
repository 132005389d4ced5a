//! The report as one page for a browser: self-contained, works without a network and, but for zooming and sorting, without
//! scripts.
//!
//! | module | what it shows |
//! |---|---|
//! | `comparison` | what differs, first |
//! | `study` | whether a study came out as expected, and its parts |
//! | `runs` | all runs as dots |
//! | `case` | the verdict and the ledger of one case |
//! | `findings` | the diagnoses, their evidence folded in |
//! | `timeline`, `stretches`, `flame` | data that `page.js` draws |
//! | `calls`, `paths`, `threads` | tables that sort |
//! | `builder` | elements and escaping: all text of a recording passes through it |
//! | `colours` | which colour stands for what |
//!
//! `page.css` and `page.js` are written by hand and put into the page as they are. Data reaches the script as JSON in an
//! element of its own, and the script only ever makes text nodes of it.

mod builder;
mod calls;
mod case;
mod colours;
mod comparison;
mod findings;
mod flame;
mod paths;
mod runs;
mod stretches;
mod study;
#[cfg(test)]
mod tests;
mod threads;
mod timeline;

use inodyne_model::recording::Recording;

use crate::text::case::Case;
use crate::text::study as study_text;
use crate::units::{bytes, date};
use builder::Html;

/// The page of a recording.
pub fn html(recording: &Recording) -> String {
    let cases = Case::all(recording);
    let title = title(recording);
    let mut page = Html::new(&format!("inodyne: {title}"), include_str!("page.css"));
    page.inside("header", &[("class", "top")], |page| {
        page.element("h1", &[], &title);
        page.element("p", &[("class", "dim")], &circumstances(recording));
        // The script shows it.
        page.element("button", &[("type", "button"), ("id", "theme"), ("hidden", "")], "");
    });
    if let Some(found) = &recording.study {
        study::contents(&mut page, found);
    } else if cases.len() > 1 {
        contents(&mut page, recording, &cases);
    }
    page.inside("main", &[], |page| {
        if let Some(found) = &recording.study {
            study::show(page, recording, found, &cases);
            return;
        }
        comparison::show(page, recording, &cases);
        runs::show(page, &cases);
        for (number, case) in cases.iter().enumerate() {
            case::show(page, case, number);
        }
    });
    page.finish(include_str!("page.js"))
}

fn title(recording: &Recording) -> String {
    match (&recording.study, recording.commands.as_slice()) {
        (Some(found), _) => study_text::title(found),
        (None, []) => "nothing was recorded".to_owned(),
        (None, [command]) => command.label.clone(),
        (None, commands) => format!("{} commands", commands.len()),
    }
}

fn circumstances(recording: &Recording) -> String {
    let host = &recording.host;
    let machine = if host.virtual_machine { "virtual machine" } else { "machine" };
    format!(
        "{} UTC · {machine} with {} CPUs ({}), {} · Linux {} · inodyne {}",
        date(recording.created_unix_s),
        host.cpus,
        host.cpu_model,
        bytes(host.memory_bytes),
        host.kernel,
        recording.program_version
    )
}

fn contents(page: &mut Html, recording: &Recording, cases: &[Case<'_>]) {
    page.inside("nav", &[("aria-label", "Contents")], |page| {
        if comparison::is_there(recording) {
            page.element("a", &[("href", "#differences")], "Differences");
        }
        page.element("a", &[("href", "#runs")], "Runs");
        for (number, case) in cases.iter().enumerate() {
            let name = if recording.commands.len() > 1 {
                format!("{} on {} ({})", case.command(), case.place_name(), case.cache())
            } else {
                format!("{} ({})", case.place_name(), case.cache())
            };
            page.element("a", &[("href", &format!("#case-{number}"))], &name);
        }
    });
}
