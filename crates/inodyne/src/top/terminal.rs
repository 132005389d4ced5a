//! The terminal while it is being drawn on. However that ends, even by a panic, it is left as it was; only a SIGKILL cannot be helped.

use std::io::{self, Stdout};
use std::os::fd::AsFd;
use std::panic;
use std::time::Duration;

use ratatui::Frame;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::termios::{Winsize, tcgetwinsize};

use super::keys::Keys;

/// A terminal that is drawn on until this is dropped.
pub struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
    keys: Keys,
    /// At the last input.
    size: Winsize,
}

impl Terminal {
    /// Takes it: keys are read one by one, and what was on the screen is saved.
    ///
    /// # Errors
    /// It is not a terminal.
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
        let inner = ratatui::Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(Terminal { inner, keys: Keys::default(), size: tcgetwinsize(io::stdin())? })
    }

    /// Draws what has changed; everything if the terminal has another size.
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

    /// What was done at it, if anything is within this time, and before there is something to read from `others`. The library's own
    /// reader blocks for ever if the terminal goes away, or sends something that is not a key.
    ///
    /// # Errors
    /// It is gone.
    pub fn input(&mut self, others: impl AsFd, within: Duration) -> io::Result<Option<Input>> {
        if let Some(key) = self.keys.next(io::stdin(), others, within)? {
            return Ok(Some(Input::Key(key)));
        }
        let size = tcgetwinsize(io::stdin())?;
        let before = std::mem::replace(&mut self.size, size);
        let is_other = (size.ws_row, size.ws_col) != (before.ws_row, before.ws_col);
        Ok(is_other.then_some(Input::Resized))
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

/// If that fails, there is no terminal any more.
fn give_back() {
    drop(execute!(io::stdout(), LeaveAlternateScreen, Show));
    drop(disable_raw_mode());
}
