//! A number that is read from what a command printed: the output is kept in memory meanwhile, so that no disk is involved.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;

use inodyne_launch::{Input, Output};
use rustix::fs::MemfdFlags;

use crate::error::ExperimentError;

/// How many characters of what is not a number are reported at most.
const MOST_TOLD: usize = 60;

/// What a command prints.
pub(super) struct Printed(File);

impl Printed {
    /// Nothing yet.
    pub(super) fn new() -> Result<Printed, ExperimentError> {
        let file = rustix::fs::memfd_create("inodyne", MemfdFlags::CLOEXEC);
        let file = file.map_err(|error| system("keep what a command prints")(error.into()))?;
        Ok(Printed(file.into()))
    }

    /// Where its output and its errors go.
    pub(super) fn output(&self) -> Output {
        Output::BothToFile(self.0.as_raw_fd())
    }

    /// Where its output goes, but not its errors.
    pub(super) fn output_alone(&self) -> Output {
        Output::File(self.0.as_raw_fd())
    }

    /// What was printed, from its beginning.
    pub(super) fn input(&self) -> Result<Input, ExperimentError> {
        (&self.0).rewind().map_err(system("read what a command printed"))?;
        Ok(Input::File(self.0.as_raw_fd()))
    }

    /// The number that was printed.
    ///
    /// # Errors
    /// It is not a number above 0. What there is instead, or the beginning of it.
    pub(super) fn number(&self) -> Result<f64, String> {
        let mut printed = Vec::new();
        let read = (&self.0).rewind().and_then(|()| (&self.0).take(1 << 10).read_to_end(&mut printed));
        let text = String::from_utf8_lossy(&printed);
        let number = read.ok().and_then(|_| text.trim().parse::<f64>().ok());
        let is_one = |number: &f64| number.is_finite() && *number > 0.0;
        number.filter(is_one).ok_or_else(|| text.trim().chars().take(MOST_TOLD).collect())
    }
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> ExperimentError {
    move |source| ExperimentError::System { what, source }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_number_is_finite_and_above_0() {
        let read = |text: &str| {
            let printed = Printed::new().unwrap();
            (&printed.0).write_all(text.as_bytes()).unwrap();
            printed.number()
        };
        assert_eq!([" 12.5\n", "3e2"].map(read), [Ok(12.5), Ok(300.0)]);
        assert_eq!(
            ["", "0", "-1", "inf", "12 k"].map(read),
            ["", "0", "-1", "inf", "12 k"].map(|it| Err(it.to_owned()))
        );
        assert_eq!(read(&"x".repeat(5_000)).map_err(|told| told.len()), Err(MOST_TOLD));
    }
}
