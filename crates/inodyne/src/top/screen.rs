//! The live view on a terminal: looks and keys in one loop, and windows that are recorded in between.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use inodyne_disk::Kept;
use inodyne_launch::SignalReader;
use inodyne_render::escaped;
use inodyne_trace::Options;
use jiff::tz::TimeZone;
use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::style::force_color_output;

use super::TopArguments;
use super::draw::{Head, draw, page};
use super::look::{DRAINED_EVERY, Look, Watcher};
use super::terminal::{Input, Terminal};
use super::view::{View, Wanted, is_interrupt, plain};
use crate::failure::{ExitStatus, Failure};
use crate::ring::Ring;
use crate::target::Target;
use crate::window::{all_ending_signals, forget, window};
use crate::{disks, host, report};

/// Shows the view until the user has seen enough, or nobody is left.
///
/// # Errors
/// The machine lacks something, there is nobody to follow, or the terminal is gone.
pub fn run(arguments: &TopArguments, target: &Target) -> Result<ExitCode, Failure> {
    let signals = all_ending_signals()?;
    let watcher = Watcher::new(target, arguments.budget())?;
    // Before the terminal is drawn on, since this also says what is ignored of it.
    let disks = disks::known();
    let machine = host::describe();
    let head = Head {
        label: escaped(&target.label()),
        machine: format!("every {:?}; Linux {}, {} CPUs", arguments.interval, machine.kernel, machine.cpus),
        colour: report::is_coloured(true),
        zone: TimeZone::system(),
    };
    // The library would look at NO_COLOR itself, and knows nothing of --color.
    force_color_output(head.colour);
    let mut screen = Screen {
        arguments,
        target,
        disks: &disks,
        terminal: Terminal::take().map_err(gone)?,
        signals,
        view: View::new(arguments.by, arguments.sort),
        head,
        look: None,
        recorded: Vec::new(),
    };
    let ended = screen.watch(watcher);
    let Screen { terminal, signals, recorded, .. } = screen;
    // The terminal first: what is printed now is to stay on it.
    drop(terminal);
    for recorded in recorded {
        // That terminal may be gone.
        let _ = writeln!(anstream::stderr(), "inodyne: {recorded}");
    }
    forget(signals);
    if ended? == Ended::NobodyLeft {
        crate::say::say!("inodyne: nobody is left of {}", escaped(&target.label()));
    }
    Ok(ExitCode::SUCCESS)
}

fn gone(error: io::Error) -> Failure {
    Failure::new(ExitStatus::Lacking, format_args!("the terminal: {error}"))
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// The user wanted it, or there were enough looks.
    Wanted,
    /// Nobody is left.
    NobodyLeft,
}

struct Screen<'a> {
    arguments: &'a TopArguments,
    target: &'a Target,
    /// What disks can do.
    disks: &'a Kept,
    terminal: Terminal,
    signals: SignalReader,
    view: View,
    head: Head,
    look: Option<Look>,
    /// What to say about recordings at the end.
    recorded: Vec<String>,
}

impl<'a> Screen<'a> {
    fn watch(&mut self, mut watcher: Watcher<'a>) -> Result<Ended, Failure> {
        let interval = self.arguments.interval;
        let mut next = Instant::now() + interval;
        let mut left = self.arguments.count;
        self.draw()?;
        while left != Some(0) {
            let rest = next.saturating_duration_since(Instant::now());
            match self.wanted(rest.min(DRAINED_EVERY))? {
                Wanted::Quit => return Ok(Ended::Wanted),
                Wanted::Record => {
                    if self.record(&mut watcher)? == Wanted::Quit {
                        return Ok(Ended::Wanted);
                    }
                    // The next look is of what follows.
                    watcher.look()?;
                    next = Instant::now() + interval;
                }
                Wanted::Nothing => {}
            }
            watcher.drain();
            if Instant::now() < next {
                continue;
            }
            next = Instant::now() + interval;
            let is_anyone_left = watcher.is_anyone_left();
            if let Some(look) = watcher.look()? {
                left = left.map(|left| left - 1);
                if !self.view.is_frozen {
                    self.look = Some(look);
                    self.draw()?;
                }
            }
            if !is_anyone_left {
                return Ok(Ended::NobodyLeft);
            }
        }
        Ok(Ended::Wanted)
    }

    /// What a key or a signal within this time asks for; anything else that it does has been done.
    fn wanted(&mut self, within: Duration) -> Result<Wanted, Failure> {
        let input = self.input(within);
        if self.signals.arrived().is_some() {
            return Ok(Wanted::Quit);
        }
        let input = input?;
        let mut wanted = Wanted::Nothing;
        if let Some(Input::Key(key)) = input {
            let page = page(self.terminal.height().map_err(gone)?);
            let look = self.look.take().unwrap_or_default();
            wanted = self.view.key(key, &look, page);
            self.look = (look.activity.length_ns.0 > 0).then_some(look);
        }
        if input.is_some() {
            self.draw()?;
        }
        Ok(wanted)
    }

    /// What was done at the terminal within this time. The terminal may be gone; then a signal says so too.
    fn input(&mut self, within: Duration) -> Result<Option<Input>, Failure> {
        self.terminal.input(&self.signals, within).map_err(gone)
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let Screen { terminal, view, look, head, .. } = self;
        terminal.draw(|frame| draw(frame, view, look.as_ref(), head)).map_err(gone)
    }

    /// Records a window as `attach` does, and reports which file it is in, or what went wrong. Those that are watched stay watched: their
    /// children may be known from nothing else.
    fn record(&mut self, watcher: &mut Watcher<'a>) -> Result<Wanted, Failure> {
        let (target, disks) = (self.target, self.disks);
        let (length, interval) = (self.arguments.length, self.arguments.interval);
        let watcher = RefCell::new(watcher);
        let mut failed = None;
        let mut wants = Wanted::Nothing;
        let file = Ring::new(&self.arguments.into).next();
        self.view.recording = Some(length);
        self.draw()?;
        let end = Cell::new(Instant::now() + length);
        let mut shown = length;
        let mut next = Instant::now() + interval;
        // What it sees meanwhile is shown to nobody, but must not pile up.
        let mut keep_up = || -> Result<(), Failure> {
            let mut watcher = watcher.borrow_mut();
            watcher.drain();
            if Instant::now() >= next {
                next = Instant::now() + interval;
                watcher.look()?;
            }
            Ok(())
        };
        // Such a recording has no timeline, so nothing fills that fast.
        let mut interrupts = |time: Duration, _: BorrowedFd<'_>| {
            let left = end.get().saturating_duration_since(Instant::now());
            match keep_up().and_then(|()| self.while_recording(time, left, &mut shown)) {
                Ok(None) => false,
                Ok(Some(wanted)) => {
                    wants = wanted;
                    true
                }
                Err(failure) => {
                    failed = Some(failure);
                    true
                }
            }
        };
        let begins = |_| end.set(Instant::now() + length);
        let mut who = || target.whom_with(watcher.borrow().processes());
        let recorded = window(target, &Options::default(), disks, Some(length), &mut who, &mut interrupts, begins);
        self.view.recording = None;
        if let Some(failure) = failed {
            return Err(failure);
        }
        let saved = recorded.and_then(|(recording, _)| {
            inodyne_recording::save(&recording, &file)?;
            Ok(recording.findings.into_iter().map(|finding| finding.id).collect::<Vec<String>>())
        });
        self.view.message = match saved {
            Ok(found) => {
                let found = if found.is_empty() { String::new() } else { format!(" ({})", found.join(", ")) };
                let recorded = format!("recorded{found}: inodyne show {}", escaped(&file.display().to_string()));
                self.recorded.push(recorded.clone());
                recorded
            }
            Err(failure) => failure.to_string(),
        };
        self.draw()?;
        Ok(wants)
    }

    /// Whether a key or a signal ends the recording, and perhaps the whole view.
    fn while_recording(
        &mut self,
        time: Duration,
        left: Duration,
        shown: &mut Duration,
    ) -> Result<Option<Wanted>, Failure> {
        let input = self.input(time);
        if self.signals.arrived().is_some() {
            return Ok(Some(Wanted::Quit));
        }
        let input = input?;
        if input.is_some() || left.as_secs() < shown.as_secs() {
            *shown = left;
            self.view.recording = Some(left);
            self.draw()?;
        }
        Ok(match input {
            Some(Input::Key(key)) if is_interrupt(&key) => Some(Wanted::Quit),
            Some(Input::Key(key)) => match plain(&key) {
                KeyCode::Char('q') => Some(Wanted::Quit),
                KeyCode::Esc => Some(Wanted::Nothing),
                _ => None,
            },
            _ => None,
        })
    }
}
