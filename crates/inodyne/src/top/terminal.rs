//! The terminal while it is drawn on. Whatever ends that, a panic too, it is left as it was; only nobody can help a SIGKILL.

use std::io::{self, Stdout};
use std::panic;
use std::time::Duration;

use ratatui::Frame;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// A terminal that is drawn on until this is dropped.
pub struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
}

impl Terminal {
    /// Takes it: keys are read one by one, and what was on the screen is kept aside.
    ///
    /// # Errors
    /// It is none.
    pub fn take() -> io::Result<Terminal> {
        let told = panic::take_hook();
        // Before the message, or it would be on the screen that is gone in a moment.
        panic::set_hook(Box::new(move |panic| {
            give_back();
            told(panic);
        }));
        let taken = Terminal::taken();
        if taken.is_err() {
            give_back();
        }
        taken
    }

    fn taken() -> io::Result<Terminal> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All), Hide)?;
        Ok(Terminal { inner: ratatui::Terminal::new(CrosstermBackend::new(io::stdout()))? })
    }

    /// Draws what has changed.
    ///
    /// # Errors
    /// It is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.inner.draw(draw).map(drop)
    }

    /// Its height in lines.
    ///
    /// # Errors
    /// It is gone.
    pub fn height(&self) -> io::Result<u16> {
        self.inner.size().map(|size| size.height)
    }

    /// What was done at it, if anything is within this time.
    ///
    /// # Errors
    /// It is gone.
    pub fn input(&self, within: Duration) -> io::Result<Option<Input>> {
        if !event::poll(within)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => Some(Input::Key(key)),
            Event::Resize(..) => Some(Input::Resized),
            _ => None,
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// What was done at a terminal.
#[derive(Debug, Clone, Copy)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// It has another size.
    Resized,
}

/// Where that fails, there is no terminal any more.
fn give_back() {
    drop(execute!(io::stdout(), LeaveAlternateScreen, Show));
    drop(disable_raw_mode());
}
