//! Which colour stands for what, the same on pages and in pictures: one for each state, and one for each family of causes.
//!
//! They are as far apart for people who cannot see red, green or blue as for everyone else: the test simulates their vision.

use inodyne_model::cause::Cause;

use crate::report::state::State;

/// A colour: red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// What a colour stands for.
pub(crate) struct Meaning {
    /// The class of an element of a page, and the name of the colour there.
    pub(crate) class: &'static str,
    /// In words, for legends.
    pub(crate) words: &'static str,
    /// On white paper, and on a dark page.
    pub(crate) light: Rgb,
    dark: Rgb,
}

const fn meaning(class: &'static str, words: &'static str, light: Rgb, dark: Rgb) -> Meaning {
    Meaning { class, words, light, dark }
}

/// All of them. What takes a CPU is green and orange, waits for devices are blue, and grey is what says little.
static MEANINGS: [Meaning; 12] = [
    meaning("user", "user", [0x1f, 0xb9, 0x74], [0x1f, 0x99, 0x53]),
    meaning("kernel", "kernel", [0xff, 0x94, 0x3b], [0xb1, 0x7e, 0x20]),
    meaning("ready", "waiting for a CPU", [0xb9, 0x85, 0xb8], [0x82, 0x4e, 0xa9]),
    meaning("device", "blocked: device", [0x36, 0x8d, 0xfc], [0x0c, 0x7b, 0xe6]),
    meaning("journal", "blocked: journal", [0xa0, 0xd9, 0xfb], [0x2d, 0x5f, 0x78]),
    meaning("lock", "blocked: lock", [0xf8, 0x49, 0x4d], [0x6a, 0x09, 0x12]),
    meaning("limit", "blocked: throttle, queue, memory", [0xed, 0xda, 0x11], [0x7c, 0x4e, 0x00]),
    meaning("server", "blocked: server", [0x71, 0x7a, 0xc8], [0x38, 0x2d, 0x9d]),
    meaning("other-end", "blocked: child, pipe, socket, poll", [0xab, 0xad, 0xff], [0x7f, 0x8d, 0xb2]),
    meaning("sleep", "sleep, stopped", [0xc3, 0xb5, 0xbc], [0x59, 0x5b, 0x54]),
    meaning("other", "blocked: other", [0x8d, 0x86, 0x85], [0x8f, 0x83, 0x88]),
    meaning("unexplained", "unexplained", [0xec, 0xee, 0xf2], [0x2c, 0x32, 0x3a]),
];

/// What the colour of a state stands for.
pub(crate) fn of_state(state: State) -> &'static Meaning {
    &MEANINGS[number(state)]
}

/// Its index among all of them, as the scripts of pages use it.
pub(crate) fn number(state: State) -> usize {
    match state {
        State::User | State::OutsideCalls => 0,
        State::Kernel | State::InCall => 1,
        State::Ready => 2,
        State::Blocked(cause) => of_cause(cause),
        State::Unexplained => 11,
    }
}

fn of_cause(cause: Cause) -> usize {
    match cause {
        Cause::DeviceRead | Cause::DeviceWrite | Cause::DeviceFlush => 3,
        Cause::Journal => 4,
        Cause::InodeLock | Cause::BufferLock | Cause::Lock | Cause::Rcu | Cause::Futex => 5,
        Cause::WriteThrottle | Cause::QueueFull | Cause::Memory => 6,
        Cause::FuseServer | Cause::RemoteServer => 7,
        Cause::Pipe | Cause::Socket | Cause::Child | Cause::Poll => 8,
        Cause::Sleep | Cause::Stopped => 9,
        Cause::Other => 10,
    }
}

/// The classes and words of all of them, for the legends that a page's script builds.
pub(crate) fn legend() -> [[&'static str; 2]; MEANINGS.len()] {
    MEANINGS.each_ref().map(|one| [one.class, one.words])
}

/// As CSS writes a colour.
pub(crate) fn written([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The colours as CSS variables, `--user` and so on, and a class for each that fills an element with it: `c-user`.
pub(crate) fn css() -> String {
    let variables = |of: fn(&Meaning) -> Rgb| -> String {
        MEANINGS.iter().map(|one| format!("--{}: {}; ", one.class, written(of(one)))).collect()
    };
    let (light, dark) = (variables(|one| one.light), variables(|one| one.dark));
    let classes: String = MEANINGS
        .iter()
        .map(|Meaning { class, .. }| format!(".c-{class} {{ background: var(--{class}); }}\n"))
        .collect();
    format!(
        ":root {{ {light}}}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=\"light\"]) {{ {dark}}} }}\n\
         @media screen {{ :root[data-theme=\"dark\"] {{ {dark}}} }}\n{classes}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How red, green and blue light is perceived: normally, and by people who lack one kind of cone (Machado, Oliveira and
    /// Fernandes 2009, at full severity).
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];
    /// Differences below 10 in CIE 1976 Lab are overlooked if the colours do not touch.
    const LEAST_DIFFERENCE: f64 = 15.0;

    fn linear(colour: Rgb) -> [f64; 3] {
        colour.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn lab(light: [f64; 3]) -> [f64; 3] {
        let part = |row: [f64; 3], white: f64| {
            let t = dot(row, light) / white;
            if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 }
        };
        let x = part([0.4124, 0.3576, 0.1805], 0.95047);
        let y = part([0.2126, 0.7152, 0.0722], 1.0);
        let z = part([0.0193, 0.1192, 0.9505], 1.08883);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn nobody_takes_one_colour_for_another() {
        let themes: [fn(&Meaning) -> Rgb; 2] = [|one| one.light, |one| one.dark];
        for (theme, eyes) in themes.into_iter().flat_map(|theme| EYES.map(|eyes| (theme, eyes))) {
            let seen = MEANINGS.each_ref().map(|one| {
                let light = linear(theme(one));
                (one.class, lab(eyes.map(|row| dot(row, light).clamp(0.0, 1.0))))
            });
            for (at, (name, one)) in seen.iter().enumerate() {
                for (other, two) in &seen[..at] {
                    let difference = one.iter().zip(two).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(difference >= LEAST_DIFFERENCE, "{name} and {other}: {difference:.1}");
                }
            }
        }
    }

    #[test]
    fn words_can_be_read_on_every_colour() {
        let luminance = |colour| dot([0.2126, 0.7152, 0.0722], linear(colour)) + 0.05;
        // The text colours of frames in page.css.
        for one in &MEANINGS {
            let on_light = luminance(one.light) / luminance([0x15, 0x18, 0x1c]);
            let on_dark = luminance([0xf4, 0xf6, 0xf8]) / luminance(one.dark);
            assert!(on_light >= 4.5 && on_dark >= 3.0, "{}: {on_light:.1}, {on_dark:.1}", one.class);
        }
    }
}
