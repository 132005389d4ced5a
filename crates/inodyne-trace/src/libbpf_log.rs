//! What libbpf says while it loads and attaches: kept for the error instead of printed, since only the command line prints.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// The warnings since the last [`listen`].
static HEARD: Mutex<String> = Mutex::new(String::new());

/// More than this is the verifier's whole log, which helps nobody in one line.
const MOST_BYTES: usize = 64 << 10;

/// From here on warnings are kept.
pub(crate) fn listen() {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).clear();
    set_print(Some((PrintLevel::Warn, keep)));
}

fn keep(_: PrintLevel, message: String) {
    let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    if heard.len() < MOST_BYTES {
        heard.push_str(&message);
    }
}

/// An error together with the first warning, which names the program or map that was refused.
pub(crate) fn explained(error: &libbpf_rs::Error) -> String {
    let heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    let first = heard.lines().map(str::trim).find(|line| !line.is_empty());
    match first.map(|line| line.strip_prefix("libbpf: ").unwrap_or(line)) {
        Some(warning) => format!("{error}: {warning}"),
        None => error.to_string(),
    }
}
