//! Draws the screen: a head about the look, the table or a closer look at one line, and a line of keys.
//!
//! Colours only emphasise what is there in any case: the marked line and the titles are reversed without colours too.

use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::activity::Account;
use inodyne_model::cause::Cause;
use inodyne_render::words_of_row;
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::look::Look;
use super::table::{By, Column, Line, per_second, percent};
use super::view::{View, Who};

/// What does not change from look to look.
#[derive(Debug, Clone)]
pub struct Head {
    /// Who is followed.
    pub label: String,
    /// The machine.
    pub machine: String,
    /// Whether there are colours.
    pub colour: bool,
    /// The time zone that times are shown in.
    pub zone: TimeZone,
}

/// Lines above the table, with its titles.
const ABOVE: u16 = 4;
/// How wide a screen must be to have room for everything that was waited for.
const WIDE: u16 = 120;
/// How wide a control group's name is there.
const NAME: usize = 40;
/// How wide a file's name is there.
const FILE: usize = 32;

/// What each key does, for the help.
const KEYS: [(&str, &str); 14] = [
    ("q, Ctrl-C", "end"),
    ("s", "sort by the next column; the star stands at it"),
    ("/", "show the lines with a word in them: of a name, a pid, a cause, an FS"),
    ("Esc", "show all lines again; back from a closer look"),
    ("g", "a line for each control group, or for each process again"),
    ("arrows", "mark another line; also PgUp, PgDn, Home, End"),
    ("Enter", "look at the marked line more closely: its calls, and its waits"),
    ("space", "freeze what is shown, or go on"),
    ("w", "write a recording of the next seconds, as attach does"),
    ("?", "this help"),
    ("FILES%", "time of all its threads waiting for files; 100 is one all the time"),
    ("CPU%", "time of all its threads on a CPU"),
    ("top", "this program's CPU time; tracing: what calls and switches take more"),
    ("~", "about: not every call was timed, to keep within --budget"),
];

/// How many lines the table has on a screen of this height.
pub fn page(height: u16) -> usize {
    usize::from(height.saturating_sub(ABOVE + 1))
}

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, view: &mut View, look: Option<&Look>, head: &Head) {
    let area = frame.area();
    let mut screen = Screen { width: area.width, height: area.height, colour: head.colour, buffer: frame.buffer_mut() };
    screen.head(view, look, head);
    match (look, view.zoomed.clone()) {
        _ if view.shows_help => screen.help(),
        (None, _) => screen.text(0, ABOVE, "the first look comes in a moment", Style::new()),
        (Some(look), Some((who, first))) => screen.zoomed(view, look, &who, first),
        (Some(look), None) => screen.table(view, look),
    }
    screen.keys(view);
}

struct Screen<'a> {
    width: u16,
    height: u16,
    colour: bool,
    buffer: &'a mut Buffer,
}

impl Screen<'_> {
    /// Text in a line, as far as it fits.
    fn text(&mut self, x: u16, y: u16, text: &str, style: Style) {
        if x < self.width && y < self.height {
            self.buffer.set_stringn(x, y, text, usize::from(self.width - x), style);
        }
    }

    /// Text that ends at the right edge of the screen.
    fn text_right(&mut self, y: u16, text: &str, style: Style) {
        self.text(self.width.saturating_sub(cells_of(text)), y, text, style);
    }

    /// A line across the whole width.
    fn bar(&mut self, y: u16, text: &str, style: Style) {
        self.text(0, y, &format!("{text:width$}", width = usize::from(self.width)), style);
    }

    fn coloured(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn head(&mut self, view: &View, look: Option<&Look>, head: &Head) {
        self.text(0, 0, &format!("inodyne top: {}", head.label), Style::new().add_modifier(Modifier::BOLD));
        let state = match view.recording {
            Some(left) => format!(" RECORDING, {:.0} s left", left.as_secs_f64().ceil()),
            None if view.is_frozen => " FROZEN".to_owned(),
            None => String::new(),
        };
        let timing = look.map(Look::timing).filter(|timing| !timing.is_empty());
        let timing = timing.map_or_else(String::new, |timing| format!("; {timing}"));
        // If there is no room for both, the machine is left out: it does not change.
        let room = self.width.saturating_sub(cells_of(&timing)).saturating_sub(cells_of(&state));
        let interval = head.machine.split("; ").next().unwrap_or_default();
        let machine = if cells_of(&head.machine) <= room { &head.machine } else { interval };
        self.text(0, 1, machine, Style::new());
        if let Some(look) = look {
            let at = look.at.to_zoned(head.zone.clone()).strftime("%H:%M:%S").to_string();
            self.text_right(0, &format!(" {at}"), Style::new());
            let colour = if look.cost.is_over() { Color::Red } else { Color::Blue };
            self.text(cells_of(machine), 1, &timing, self.coloured(colour));
            self.text(0, 2, &look.summary(), Style::new());
            let lost = look.lost();
            if !lost.is_empty() {
                self.text_right(2, &format!(" {lost}"), self.coloured(Color::Red).add_modifier(Modifier::BOLD));
            }
        }
        self.text_right(1, &state, self.coloured(Color::Red).add_modifier(Modifier::BOLD));
    }

    fn table(&mut self, view: &mut View, look: &Look) {
        let (lines, marked) = view.lines(look);
        let is_wide = self.width >= WIDE;
        let titles = cells(view.by, is_wide, |column| {
            let title = column.title(view.by);
            if column == view.sort { format!("{title}*") } else { title.to_owned() }
        });
        let more = if is_wide { format!("{:FILE$} WAITS FOR", "FILE") } else { String::new() };
        self.bar(ABOVE - 1, &format!("{titles}{more}"), Style::new().add_modifier(Modifier::REVERSED));
        let room = page(self.height);
        let first = (marked + 1).saturating_sub(room);
        for (at, line) in lines.iter().enumerate().skip(first).take(room) {
            let y = ABOVE + (at - first) as u16;
            self.line(y, line, view.by, look, at == marked);
        }
        if lines.is_empty() {
            let nobody = if view.word.is_empty() {
                "nobody does anything but wait for things other than files"
            } else {
                "no line has this word"
            };
            self.text(0, ABOVE, nobody, Style::new());
        }
    }

    fn line(&mut self, y: u16, line: &Line, by: By, look: &Look, is_marked: bool) {
        let (is_wide, length) = (self.width >= WIDE, look.activity.length_ns);
        let mut text = cells(by, is_wide, |column| column.cell(line, length));
        if is_wide {
            let file = cut_before(look.file(line).unwrap_or("-"), FILE);
            text += &format!("{file:FILE$} {}", waits(&line.account, length));
        }
        let marked = if is_marked { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        self.bar(y, &text, marked);
        let much = line.account.files_ns().share_of(length) >= 0.1;
        let mut x = 0;
        for column in Column::ALL {
            let width = width(column, by, is_wide);
            let style = match column {
                Column::Files | Column::Cause if much => self.coloured(Color::Blue).add_modifier(Modifier::BOLD),
                Column::Cpu => self.coloured(Color::Green),
                _ => Style::new(),
            };
            let area = ratatui::layout::Rect { x, y, width: width as u16, height: 1 };
            self.buffer.set_style(area.intersection(self.buffer.area), style);
            x += width as u16 + 1;
        }
    }

    fn zoomed(&mut self, view: &mut View, look: &Look, who: &Who, first: usize) {
        let length = look.activity.length_ns;
        let number = match who {
            Who::Process(pid) => format!("process {pid} "),
            Who::Group(_) => String::new(),
        };
        let Some((name, account)) = view.of(who, look) else {
            self.text(0, ABOVE, &format!("{number}is not there any more"), Style::new());
            return;
        };
        let threads = if account.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", account.threads) };
        let calls = per_second(account.calls, length);
        let file = match who {
            Who::Process(pid) => look.files.get(pid).map(|file| format!(", at {file}")).unwrap_or_default(),
            Who::Group(_) => String::new(),
        };
        let title = format!("{number}{name}: {threads}, {calls} calls a second{file}");
        self.text(0, ABOVE - 1, &title, Style::new().add_modifier(Modifier::BOLD));
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        self.bar(ABOVE, &format!("{:>7} {:>9} {:25} {}", "TIME%", "WAITS/S", "IN", "WHAT"), reversed);
        let rows = account.rows.iter().skip(first).take(page(self.height).saturating_sub(1));
        for (y, row) in (ABOVE + 1..).zip(rows) {
            let (subject, what) = words_of_row(row);
            let count = if row.cause.is_some() { per_second(row.count, length) } else { "-".to_owned() };
            let about = if row.estimated { "~" } else { "" };
            let share = format!("{about}{}", percent(row.ns, length));
            let text = format!("{share:>7} {count:>9} {subject:25} {what}");
            let is_of_files = row.cause.is_some_and(Cause::is_of_files);
            let style =
                if is_of_files { self.coloured(Color::Blue).add_modifier(Modifier::BOLD) } else { Style::new() };
            self.text(0, y, &text, style);
        }
    }

    fn help(&mut self) {
        for (y, (key, what)) in (ABOVE..).zip(KEYS) {
            self.text(0, y, &format!("{key:>9}  {what}"), Style::new());
        }
    }

    fn keys(&mut self, view: &View) {
        let text = if view.is_typing {
            format!("lines with: {}_   Enter takes it, Esc shows all", view.word)
        } else if view.recording.is_some() {
            "q quits  Esc ends the recording now".to_owned()
        } else if !view.message.is_empty() {
            view.message.clone()
        } else if view.shows_help {
            "q quits  any other key goes on".to_owned()
        } else {
            let freeze = if view.is_frozen { "space goes on" } else { "space freezes" };
            let table = "s sort  / word  g groups  Enter zooms";
            match (&view.zoomed, view.word.as_str()) {
                (Some(_), _) => format!("q quits  ? help  Esc back  {freeze}  w records"),
                (None, "") => format!("q quits  ? help  {freeze}  w records  {table}"),
                (None, word) => format!("q quits  ? help  Esc all, not only: {word}  {freeze}  {table}"),
            }
        };
        self.bar(self.height.saturating_sub(1), &text, Style::new().add_modifier(Modifier::REVERSED));
    }
}

/// How wide a column is; the name has what is left, or on a wide screen room for a long one.
fn width(column: Column, by: By, is_wide: bool) -> usize {
    match column {
        Column::Name if is_wide && by == By::Cgroup => NAME,
        column => column.width(),
    }
}

/// The cells of a line, side by side.
fn cells(by: By, is_wide: bool, cell: impl Fn(Column) -> String) -> String {
    let one = |column: Column| {
        let width = width(column, by, is_wide);
        let mut text = cell(column);
        if column != Column::Name || is_wide {
            text = inodyne_render::cut(&text, width);
        }
        if column.is_number() { format!("{text:>width$} ") } else { format!("{text:width$} ") }
    };
    Column::ALL.iter().map(|column| one(*column)).collect()
}

/// How wide plain text is.
fn cells_of(text: &str) -> u16 {
    u16::try_from(text.chars().count()).unwrap_or(u16::MAX)
}

/// The end of a path, which says most, if the whole path is longer than this.
fn cut_before(path: &str, width: usize) -> String {
    let count = path.chars().count();
    if count <= width {
        return path.to_owned();
    }
    std::iter::once('…').chain(path.chars().skip(count + 1 - width)).collect()
}

/// All that was waited for, longest first.
fn waits(account: &Account, length: Nanos) -> String {
    let mut causes: BTreeMap<Cause, Nanos> = BTreeMap::new();
    for row in &account.rows {
        if let Some(cause) = row.cause {
            *causes.entry(cause).or_default() += row.ns;
        }
    }
    let mut causes: Vec<(Cause, Nanos)> = causes.into_iter().collect();
    causes.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let words: Vec<String> = causes.iter().map(|(cause, ns)| format!("{cause} {}", percent(*ns, length))).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use jiff::Timestamp;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::look::Cost;
    use super::super::table::sample;
    use super::*;

    fn drawn(width: u16, height: u16, view: &mut View) -> String {
        let mut activity = sample::activity();
        activity.lost.waits = if view.is_frozen { 12 } else { 0 };
        let at = Timestamp::from_second(1_790_000_000).expect("a time");
        let files = HashMap::from([(6, "/var/lib/somewhere/in/a/database/journal".to_owned())]);
        let (limit, timed_one_in) = ("5%".parse().expect("a percentage"), if view.is_frozen { 8 } else { 1 });
        activity.processes[1].account.rows[1].estimated = timed_one_in > 1;
        let look = Look { at, activity, cost: Cost { own: 0.012, tracing: 0.031, limit, timed_one_in }, files };
        let head = Head {
            label: "all processes".to_owned(),
            machine: "every 2.0 s; Linux 6.18.5, 2 CPUs".to_owned(),
            colour: true,
            zone: TimeZone::UTC,
        };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal of a test");
        terminal.draw(|frame| draw(frame, view, Some(&look), &head)).expect("it draws");
        terminal.backend().to_string()
    }

    #[test]
    fn the_table_at_both_sizes() {
        let mut view = View::new(By::Process, Column::Files);
        insta::assert_snapshot!("table-80x24", drawn(80, 24, &mut view));
        insta::assert_snapshot!("table-200x60", drawn(200, 60, &mut view));
    }

    #[test]
    fn a_closer_look_and_the_help() {
        let mut view = View::new(By::Process, Column::Files);
        view.is_frozen = true;
        view.zoomed = Some((Who::Process(6), 0));
        insta::assert_snapshot!("zoomed-80x24", drawn(80, 24, &mut view));
        view.zoomed = Some((Who::Process(99), 0));
        assert!(drawn(80, 24, &mut view).contains("process 99 is not there any more"));
        view.shows_help = true;
        insta::assert_snapshot!("help-80x24", drawn(80, 24, &mut view));
    }

    #[test]
    fn what_is_said_of_timing_has_room_before_the_machine() {
        let mut view = View::new(By::Process, Column::Files);
        view.is_frozen = true;
        assert!(drawn(80, 24, &mut view).contains("every 2.0 s; Linux 6.18.5, 2 CPUs; timing 1 call in 8 (budget 5%)"));
        assert!(drawn(60, 24, &mut view).contains("every 2.0 s; timing 1 call in 8 (budget 5%) "));
        view.is_frozen = false;
        assert!(drawn(34, 24, &mut view).contains("every 2.0 s; Linux 6.18.5, 2 CPUs"));
    }

    #[test]
    fn no_screen_is_too_small() {
        for (width, height) in [(1, 1), (3, 4), (20, 5), (500, 6)] {
            let mut view = View::new(By::Process, Column::Files);
            drawn(width, height, &mut view);
            view.zoomed = Some((Who::Process(6), 0));
            drawn(width, height, &mut view);
        }
    }
}
