//! One case: the verdict in large letters, the ledger as bars, and the sections below.

use inodyne_model::Nanos;
use inodyne_model::ledger::{Ledger, Row};
use inodyne_model::run::Run;

use super::builder::{Column, Html};
use super::{calls, colours, findings, flame, paths, threads, timeline};
use crate::text::case::Case;
use crate::text::ledger::{self as ledger_text, Shown, parts};
use crate::text::{overhead, runs, verdict};
use crate::units::{duration, percent, seconds};

pub(super) fn show(page: &mut Html, case: &Case<'_>, number: usize) {
    page.inside("section", &[("class", "case"), ("id", &format!("case-{number}"))], |page| {
        headline(page, case);
        if let Some(trace) = case.trace {
            ledger(page, case, &trace.ledger);
        }
        findings::show(page, case);
        if let Some(trace) = case.trace {
            timeline::show(page, trace);
            flame::show(page, trace);
            calls::show(page, trace);
            paths::show(page, trace);
            threads::show(page, trace);
        }
        measured(page, case);
        if let Some(trace) = case.trace {
            page.element(
                "p",
                &[("class", if trace.lost.total() == 0 { "dim" } else { "warning" })],
                &overhead::in_a_line(trace),
            );
        }
    });
}

fn headline(page: &mut Html, case: &Case<'_>) {
    page.inside("h2", &[], |page| {
        page.element("code", &[], case.command());
        page.text(&format!(" on {} ({})", case.place_name(), verdict::circumstances(case)));
    });
    page.inside("p", &[("class", "verdict")], |page| {
        page.element("b", &[("class", "time")], &verdict::time(case));
        if let Some(likely) = verdict::likely(case) {
            page.element("span", &[("class", "good")], &likely);
        }
    });
    let reason = verdict::reason(case);
    if !reason.is_empty() {
        page.element("p", &[("class", "reason")], &reason);
    }
    if let Some(ending) = verdict::ending(case) {
        page.element("p", &[("class", "warning")], &ending);
    }
    let remarks = verdict::remarks(case);
    if !remarks.is_empty() {
        page.inside("details", &[], |page| {
            page.element("summary", &[], "How it was measured");
            for remark in remarks {
                page.element("p", &[("class", "dim")], &remark);
            }
        });
    }
}

/// What was measured of the untraced runs, beside the time that the dots show.
fn measured(page: &mut Html, case: &Case<'_>) {
    let untraced: Vec<&Run> = case.untraced().collect();
    if case.runs.len() > 1 && !untraced.is_empty() {
        page.element("h3", &[], &runs::heading(case));
        page.same("runs", &runs::table(&untraced, case.statistics()), |page, _, name| page.span(name));
    }
}

fn ledger(page: &mut Html, case: &Case<'_>, ledger: &Ledger) {
    page.element("h3", &[], &ledger_text::heading(case));
    if let Some(note) = ledger_text::note(case) {
        page.element("p", &[("class", "dim")], note);
    }
    let whole = ledger.wall_ns;
    page.inside("div", &[("class", "stacked"), ("aria-hidden", "true")], |page| {
        for row in &ledger.rows {
            let style = format!("width:{:.4}%", row.ns.share_of(whole) * 100.0);
            let class = format!("c-{}", colours::of_row(row.kind, row.cause));
            page.element("span", &[("class", &class), ("style", &style), ("title", &title(row, whole))], "");
        }
    });
    let Shown { mut large, small, residual } = Shown::new(ledger);
    large.extend(residual);
    rows(page, ledger, &large, true);
    if !small.is_empty() {
        let sum: Nanos = small.iter().map(|row| row.ns).sum();
        page.inside("details", &[("class", "minor")], |page| {
            let words = format!("{} smaller rows, {} s together", small.len(), seconds(sum, whole));
            page.element("summary", &[], &words);
            rows(page, ledger, &small, false);
        });
    }
}

fn rows(page: &mut Html, ledger: &Ledger, rows: &[&Row], with_sum: bool) {
    let whole = ledger.wall_ns;
    let largest = ledger.rows.iter().map(|row| row.ns).max().unwrap_or_default();
    let columns = [
        Column::text("where"),
        Column::text("what"),
        Column::number("seconds"),
        Column::number("share"),
        Column::drawn(""),
    ];
    page.table("ledger", &columns, |page| {
        page.inside("tbody", &[], |page| rows.iter().for_each(|row| ledger_row(page, row, whole, largest)));
        if with_sum {
            page.inside("tfoot", &[], |page| {
                page.cells(&[("", ""), ("", "wall-clock"), ("n", &seconds(whole, whole)), ("n", "100%"), ("", "")]);
            });
        }
    });
}

fn title(row: &Row, whole: Nanos) -> String {
    let words = parts(row);
    format!("{} {}: {} ({})", words.subject, words.what, duration(row.ns), percent(row.ns.share_of(whole)))
}

fn ledger_row(page: &mut Html, row: &Row, whole: Nanos, largest: Nanos) {
    let words = parts(row);
    let class = format!("c-{}", colours::of_row(row.kind, row.cause));
    page.inside("tr", &[], |page| {
        page.element("td", &[], &words.subject);
        page.inside("td", &[("class", "what")], |page| {
            page.element("span", &[], &words.what);
            if !words.via.is_empty() {
                page.element("span", &[("class", "via")], &words.via);
            }
            if !words.stack.is_empty() {
                page.element("span", &[("class", "via")], &format!("in {}", words.stack));
            }
        });
        page.element("td", &[("class", "n")], &seconds(row.ns, whole));
        page.element("td", &[("class", "n")], &percent(row.ns.share_of(whole)));
        page.inside("td", &[("class", "bar")], |page| {
            let style = format!("width:{:.3}%", row.ns.share_of(largest) * 100.0);
            page.element("span", &[("class", &class), ("style", &style)], "");
        });
    });
}
