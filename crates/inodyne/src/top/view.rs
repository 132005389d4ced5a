//! What the user has chosen, and what each key does. It knows nothing of terminals.

use std::time::Duration;

use inodyne_model::activity::Account;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::groups::Groups;
use super::look::Look;
use super::table::{By, Column, Line, lines};

/// Whom a line is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// A process.
    Process(u32),
    /// A control group, by its path.
    Group(String),
}

impl From<&Line> for Who {
    fn from(line: &Line) -> Who {
        line.pid.map_or_else(|| Who::Group(line.name.clone()), Who::Process)
    }
}

/// What a key is to have done that the screen cannot do for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing.
    Nothing,
    /// The end.
    Quit,
    /// A recording of a window.
    Record,
}

/// What is shown, and how.
#[derive(Debug)]
pub struct View {
    /// What a line stands for.
    pub by: By,
    /// The column by which lines are sorted.
    pub sort: Column,
    /// What lines must have in them.
    pub word: String,
    /// Whether the word is being typed.
    pub is_typing: bool,
    /// Whether the last look stays.
    pub is_frozen: bool,
    /// Whether the keys are explained.
    pub shows_help: bool,
    /// The process or group looked at more closely, and the first of its rows shown.
    pub zoomed: Option<(Who, usize)>,
    /// What is left of the window that is being recorded.
    pub recording: Option<Duration>,
    /// Something to tell, until the next key.
    pub message: String,
    /// The line that is marked; none for the first.
    selected: Option<Who>,
    groups: Groups,
}

impl View {
    /// As the arguments say.
    pub fn new(by: By, sort: Column) -> View {
        View {
            by,
            sort,
            word: String::new(),
            is_typing: false,
            is_frozen: false,
            shows_help: false,
            zoomed: None,
            recording: None,
            message: String::new(),
            selected: None,
            groups: Groups::default(),
        }
    }

    /// The lines of a look, and which of them is marked.
    pub fn lines(&mut self, look: &Look) -> (Vec<Line>, usize) {
        let groups = &mut self.groups;
        groups.keep(&look.activity);
        let lines = lines(&look.activity, self.by, self.sort, &self.word, &mut |process| groups.of(process));
        let marked = lines.iter().position(|line| Some(Who::from(line)) == self.selected).unwrap_or(0);
        (lines, marked)
    }

    /// What a process or a group did, and its name; nothing for one that has ended.
    pub fn of(&mut self, who: &Who, look: &Look) -> Option<(String, Account)> {
        match who {
            Who::Process(pid) => {
                let process = look.activity.processes.iter().find(|process| process.number() == *pid)?;
                Some((inodyne_render::escaped(&process.comm), process.account.clone()))
            }
            Who::Group(path) => {
                let groups = &mut self.groups;
                let lines = lines(&look.activity, By::Cgroup, Column::Files, "", &mut |process| groups.of(process));
                lines.into_iter().find(|line| line.name == *path).map(|line| (line.name, line.account))
            }
        }
    }

    /// Does what a key asks for, with this many lines on the screen.
    pub fn key(&mut self, key: KeyEvent, look: &Look, page: usize) -> Wanted {
        self.message.clear();
        if is_interrupt(&key) {
            return Wanted::Quit;
        }
        if self.is_typing {
            self.type_word(&key);
            return Wanted::Nothing;
        }
        let code = plain(&key);
        if self.shows_help {
            self.shows_help = false;
            return if code == KeyCode::Char('q') { Wanted::Quit } else { Wanted::Nothing };
        }
        match code {
            KeyCode::Char('q') => return Wanted::Quit,
            KeyCode::Char('w') => return Wanted::Record,
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Char(' ') => self.is_frozen = !self.is_frozen,
            KeyCode::Esc if self.zoomed.is_some() => self.zoomed = None,
            KeyCode::Esc => self.word.clear(),
            KeyCode::Char('/') if self.zoomed.is_none() => self.is_typing = true,
            KeyCode::Char('s') if self.zoomed.is_none() => self.sort = next(self.sort),
            KeyCode::Char('g') if self.zoomed.is_none() => {
                self.by = if self.by == By::Process { By::Cgroup } else { By::Process };
                self.selected = None;
            }
            KeyCode::Enter if self.zoomed.is_none() => {
                let (lines, marked) = self.lines(look);
                self.zoomed = lines.get(marked).map(|line| (Who::from(line), 0));
            }
            code => self.move_by(code, look, page),
        }
        Wanted::Nothing
    }

    fn type_word(&mut self, key: &KeyEvent) {
        match plain(key) {
            _ if is_with_control(key, 'u') => self.word.clear(),
            KeyCode::Char(character) => self.word.push(character),
            KeyCode::Backspace => drop(self.word.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.word.clear();
                self.is_typing = false;
            }
            _ => {}
        }
    }

    /// Moves the mark, or scrolls the rows of the closer look.
    fn move_by(&mut self, code: KeyCode, look: &Look, page: usize) {
        let moved = |at: usize, last: usize| match code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (at + 1).min(last),
            KeyCode::PageUp => at.saturating_sub(page),
            KeyCode::PageDown => (at + page).min(last),
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => at.min(last),
        };
        if let Some((who, first)) = self.zoomed.take() {
            let rows = self.of(&who, look).map_or(0, |(_, account)| account.rows.len());
            self.zoomed = Some((who, moved(first, rows.saturating_sub(1))));
            return;
        }
        let (lines, marked) = self.lines(look);
        self.selected = lines.get(moved(marked, lines.len().saturating_sub(1))).map(Who::from);
    }
}

fn next(column: Column) -> Column {
    let at = Column::ALL.iter().position(|own| *own == column).unwrap_or(0);
    Column::ALL[(at + 1) % Column::ALL.len()]
}

/// Whether a key is Ctrl-C, which is not a signal while the terminal passes on every key.
pub fn is_interrupt(key: &KeyEvent) -> bool {
    is_with_control(key, 'c')
}

fn is_with_control(key: &KeyEvent, letter: char) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char(letter)
}

/// Which key it is; a character with Ctrl or Alt is another key, and becomes one that does nothing.
pub fn plain(key: &KeyEvent) -> KeyCode {
    let is_other = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    if is_other && matches!(key.code, KeyCode::Char(_)) { KeyCode::Null } else { key.code }
}

#[cfg(test)]
mod tests {
    use super::super::table::sample;
    use super::*;

    fn press(view: &mut View, codes: &[KeyCode]) -> Wanted {
        let look = Look { activity: sample::activity(), ..Look::default() };
        let mut wanted = Wanted::Nothing;
        for code in codes {
            wanted = view.key(KeyEvent::from(*code), &look, 10);
        }
        wanted
    }

    fn marked(view: &mut View) -> String {
        let look = Look { activity: sample::activity(), ..Look::default() };
        let (lines, marked) = view.lines(&look);
        lines[marked].name.clone()
    }

    #[test]
    fn the_mark_stays_with_whom_it_is_on() {
        let mut view = View::new(By::Process, Column::Files);
        press(&mut view, &[KeyCode::Down]);
        assert_eq!(marked(&mut view), "cc1");
        view.sort = Column::Cpu;
        assert_eq!(marked(&mut view), "cc1");
        press(&mut view, &[KeyCode::End, KeyCode::Down, KeyCode::Down, KeyCode::PageUp]);
        assert_eq!(view.selected, Some(Who::Process(5)));
    }

    #[test]
    fn keys_do_what_the_help_says() {
        let mut view = View::new(By::Process, Column::Files);
        assert_eq!(press(&mut view, &[KeyCode::Char('w')]), Wanted::Record);
        assert_eq!(press(&mut view, &[KeyCode::Char('q')]), Wanted::Quit);
        press(&mut view, &[KeyCode::Char('s'), KeyCode::Char(' ')]);
        assert_eq!((view.sort, view.is_frozen), (Column::Cause, true));
        press(&mut view, &[KeyCode::Char('?')]);
        assert!(view.shows_help);
        press(&mut view, &[KeyCode::Char('s')]);
        assert_eq!((view.shows_help, view.sort), (false, Column::Cause), "any key only ends the help");
        press(&mut view, &[KeyCode::Enter]);
        assert_eq!(view.zoomed, Some((Who::Process(5), 0)));
        press(&mut view, &[KeyCode::Down, KeyCode::Down, KeyCode::Down]);
        assert_eq!(view.zoomed, Some((Who::Process(5), 1)), "no further than its rows go");
        press(&mut view, &[KeyCode::Esc, KeyCode::Char('g')]);
        assert_eq!((view.zoomed, view.by), (None, By::Cgroup));
    }

    #[test]
    fn with_ctrl_or_alt_a_letter_is_another_key() {
        let mut view = View::new(By::Process, Column::Files);
        let look = Look { activity: sample::activity(), ..Look::default() };
        let other = |letter, modifiers| KeyEvent::new(KeyCode::Char(letter), modifiers);
        for modifiers in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
            for letter in ['q', 'w', 's', 'g', '/', '?', ' '] {
                assert_eq!(view.key(other(letter, modifiers), &look, 10), Wanted::Nothing, "{letter} {modifiers}");
            }
        }
        let is_as_before = !view.is_typing && !view.shows_help && !view.is_frozen;
        assert!(is_as_before && view.sort == Column::Files && view.by == By::Process);
        press(&mut view, &[KeyCode::Char('/'), KeyCode::Char('a')]);
        view.key(other('w', KeyModifiers::CONTROL), &look, 10);
        assert_eq!(view.word, "a");
        view.key(other('u', KeyModifiers::CONTROL), &look, 10);
        assert_eq!((view.word.as_str(), view.is_typing), ("", true));
    }

    #[test]
    fn a_word_is_typed_and_taken_back() {
        let mut view = View::new(By::Process, Column::Files);
        assert_eq!(press(&mut view, &[KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Char('x')]), Wanted::Nothing);
        press(&mut view, &[KeyCode::Backspace, KeyCode::Enter]);
        assert_eq!((view.word.as_str(), view.is_typing), ("q", false));
        press(&mut view, &[KeyCode::Esc]);
        assert_eq!(view.word, "");
        let look = Look { activity: sample::activity(), ..Look::default() };
        view.is_typing = true;
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.key(interrupt, &look, 10), Wanted::Quit);
    }
}
