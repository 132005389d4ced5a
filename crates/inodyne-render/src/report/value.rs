//! Values as they were measured, and the one place that writes them for people.
//!
//! A cell keeps the raw value. A printer for people asks for [`Cell::written`]; CSV and JSON take the [`Value`] itself.

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::histogram::Histogram;
use serde_json::json;

use super::change::{self, Whisker};
use super::state::State;
use crate::line::{Span, Style};
use crate::units::{bytes, columns, duration, micros, percent, rate, rate_of_bytes, scaled, scaled_difference};

/// What was measured, or what it is called.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Value {
    /// Not known, or does not apply.
    #[default]
    Nothing,
    /// Words, or a name from the recording.
    Text(String),
    /// How many.
    Count(u64),
    /// A number that may be negative: an exit code.
    Integer(i64),
    /// A number without a unit.
    Number(f64),
    /// Whether something holds.
    Truth(bool),
    /// A length of time.
    Time(Nanos),
    /// One time minus another, in nanoseconds.
    TimeDifference(i64),
    /// The 95% interval of such a difference.
    TimeDifferenceInterval(i64, i64),
    /// One count minus another.
    CountDifference(i64),
    /// A part of a whole: 1 is all of it.
    Share(f64),
    /// One time divided by another.
    Ratio(f64),
    /// The 95% interval of a ratio.
    RatioInterval(f64, f64),
    /// A size.
    Bytes(u64),
    /// How values are distributed: a count for each step.
    Shape(Vec<u64>),
    /// What is drawn and not written.
    Picture(Picture),
}

/// What is drawn in a cell. A terminal draws bars only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Picture {
    /// A bar: this part of the longest one.
    Bar(f64, State),
    /// A bar to the left or to the right of the middle: this part of the longest one.
    Diverging(f64, State),
    /// A bar of several pieces, as long as this part of the longest one; each piece with its part and its words.
    Stacked(f64, Vec<(f64, State, String)>),
    /// How long calls took.
    Histogram(Box<Histogram>),
    /// A quantity over time, each value in thousandths of the largest.
    Course(Vec<u64>),
    /// A ratio with its interval.
    Whisker(Whisker),
}

impl Value {
    /// The value in a table for programs: all digits, no unit; nothing for what is not known.
    pub(crate) fn raw(&self) -> String {
        match self {
            Value::Nothing | Value::Picture(_) => String::new(),
            Value::Text(text) => text.clone(),
            Value::Count(n) | Value::Bytes(n) => n.to_string(),
            Value::Integer(n) | Value::TimeDifference(n) | Value::CountDifference(n) => n.to_string(),
            Value::Number(x) | Value::Share(x) | Value::Ratio(x) => x.to_string(),
            Value::Truth(is) => is.to_string(),
            Value::Time(ns) => ns.0.to_string(),
            Value::TimeDifferenceInterval(low, high) => format!("{low} {high}"),
            Value::RatioInterval(low, high) => format!("{low} {high}"),
            Value::Shape(counts) => counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
        }
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Value::Nothing | Value::Picture(_) => serde_json::Value::Null,
            Value::Text(text) => json!(text),
            Value::Count(n) | Value::Bytes(n) => json!(n),
            Value::Integer(n) | Value::TimeDifference(n) | Value::CountDifference(n) => json!(n),
            Value::Number(x) | Value::Share(x) | Value::Ratio(x) => json!(x),
            Value::Truth(is) => json!(is),
            Value::Time(ns) => json!(ns.0),
            Value::TimeDifferenceInterval(low, high) => json!([low, high]),
            Value::RatioInterval(low, high) => json!([low, high]),
            Value::Shape(counts) => json!(counts),
        }
    }
}

macro_rules! from {
    ($($of:ty => |$value:ident| $make:expr),* $(,)?) => {$(
        impl From<$of> for Value {
            fn from($value: $of) -> Value {
                $make
            }
        }
    )*};
}

from! {
    &str => |text| Value::Text(text.to_owned()),
    String => |text| Value::Text(text),
    &String => |text| Value::Text(text.clone()),
    bool => |is| Value::Truth(is),
    u8 => |n| Value::Count(n.into()),
    u32 => |n| Value::Count(n.into()),
    u64 => |n| Value::Count(n),
    usize => |n| Value::Count(n as u64),
    i32 => |n| Value::Integer(n.into()),
    f64 => |x| Value::Number(x),
    Nanos => |ns| Value::Time(ns),
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Nothing, Into::into)
    }
}

/// How a value is written for people.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    /// As suits the value alone.
    Own,
    /// In the unit and with the decimals that suit the largest time of the table, without the unit.
    Scaled { largest: Nanos },
    /// Microseconds without the unit.
    Micros,
    /// Per cent with two decimals and without the sign.
    Hundredths,
    /// With a separator between thousands.
    Grouped,
    /// A number per second.
    Rate,
    /// Bytes per second.
    RateOfBytes,
}

/// How zero is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zero {
    /// Like any other value.
    Written,
    /// As an empty cell.
    Blank,
    /// As `0`.
    Short,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) value: Value,
    unit: Unit,
    style: Style,
    zero: Zero,
    /// Where a click on it leads, on a page: the number of a case.
    pub(crate) case: Option<usize>,
}

impl Cell {
    fn new(value: Value, unit: Unit) -> Cell {
        let style = if matches!(value, Value::Shape(_)) { Style::Shape } else { Style::Plain };
        Cell { value, unit, style, zero: Zero::Written, case: None }
    }

    /// An empty cell.
    pub(crate) fn nothing() -> Cell {
        Cell::new(Value::Nothing, Unit::Own)
    }

    /// A value in the unit that suits it.
    pub(crate) fn of(value: impl Into<Value>) -> Cell {
        Cell::new(value.into(), Unit::Own)
    }

    /// A time in the unit of a table whose largest time is `largest`.
    pub(crate) fn scaled(ns: Nanos, largest: Nanos) -> Cell {
        Cell::new(Value::Time(ns), Unit::Scaled { largest })
    }

    /// A difference of times in such a table.
    pub(crate) fn scaled_difference(ns: i64, largest: Nanos) -> Cell {
        Cell::new(Value::TimeDifference(ns), Unit::Scaled { largest })
    }

    /// The interval of a difference of times in such a table; empty if there is none.
    pub(crate) fn scaled_interval(ends: Option<(i64, i64)>, largest: Nanos) -> Cell {
        let value = ends.map_or(Value::Nothing, |(low, high)| Value::TimeDifferenceInterval(low, high));
        Cell::new(value, Unit::Scaled { largest })
    }

    /// A time in a column of microseconds.
    pub(crate) fn micros(ns: Nanos) -> Cell {
        Cell::new(Value::Time(ns), Unit::Micros)
    }

    /// A large count.
    pub(crate) fn grouped(count: u64) -> Cell {
        Cell::new(Value::Count(count), Unit::Grouped)
    }

    /// How often something is done per second.
    pub(crate) fn rate(per_second: f64) -> Cell {
        Cell::new(Value::Number(per_second), Unit::Rate)
    }

    /// How many bytes are moved per second.
    pub(crate) fn rate_of_bytes(per_second: f64) -> Cell {
        Cell::new(Value::Number(per_second), Unit::RateOfBytes)
    }

    /// How much more or less one count is than another.
    pub(crate) fn count_difference(count: i64) -> Cell {
        Cell::new(Value::CountDifference(count), Unit::Own)
    }

    /// A part of a whole in per cent.
    pub(crate) fn share(share: f64) -> Cell {
        Cell::new(Value::Share(share), Unit::Own)
    }

    /// A part of a whole in a column of per cent with two decimals.
    pub(crate) fn hundredths(share: f64) -> Cell {
        Cell::new(Value::Share(share), Unit::Hundredths)
    }

    /// A ratio as a change: `+12%`.
    pub(crate) fn change(ratio: Option<f64>) -> Cell {
        Cell::new(ratio.map_or(Value::Nothing, Value::Ratio), Unit::Own)
    }

    /// The interval of a ratio as changes: `[+8%, +17%]`.
    pub(crate) fn changes(ends: Option<(f64, f64)>) -> Cell {
        Cell::new(ends.map_or(Value::Nothing, |(low, high)| Value::RatioInterval(low, high)), Unit::Own)
    }

    /// What is drawn.
    pub(crate) fn picture(picture: Picture) -> Cell {
        Cell::new(Value::Picture(picture), Unit::Own)
    }

    /// In this style.
    pub(crate) fn styled(self, style: Style) -> Cell {
        Cell { style, ..self }
    }

    /// Empty if the value is zero.
    pub(crate) fn blank_if_zero(self) -> Cell {
        Cell { zero: Zero::Blank, ..self }
    }

    /// Without decimals if the value is zero.
    pub(crate) fn short_if_zero(self) -> Cell {
        Cell { zero: Zero::Short, ..self }
    }

    /// Linked to a case, on a page.
    pub(crate) fn leading_to(self, case: usize) -> Cell {
        Cell { case: Some(case), ..self }
    }

    /// Its style.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// Whether a number was measured, and it is zero.
    pub(crate) fn is_zero(&self) -> bool {
        matches!(self.value, Value::Count(0) | Value::Time(Nanos(0)) | Value::Bytes(0))
    }

    /// The cell for people.
    pub(crate) fn span(&self) -> Span {
        match self.zero {
            Zero::Blank if self.is_zero() => Span::default(),
            Zero::Short if self.is_zero() => Span::new("0", Style::Dim),
            _ => Span::new(self.written(), self.style),
        }
    }

    /// The value as it is written for people. Pictures are drawn by the printers.
    pub(crate) fn written(&self) -> String {
        let signed = |ns: i64| match self.unit {
            Unit::Scaled { largest } => scaled_difference(ns, largest),
            _ => scaled_difference(ns, Nanos(ns.unsigned_abs())),
        };
        match &self.value {
            Value::Nothing | Value::Picture(_) => String::new(),
            Value::Time(ns) => match self.unit {
                Unit::Scaled { largest } => scaled(*ns, largest),
                Unit::Micros => micros(*ns),
                _ => duration(*ns),
            },
            Value::TimeDifference(ns) => signed(*ns),
            Value::TimeDifferenceInterval(low, high) => format!("[{}, {}]", signed(*low), signed(*high)),
            Value::CountDifference(0) => "0".to_owned(),
            Value::CountDifference(n) => {
                format!("{}{}", if *n < 0 { '-' } else { '+' }, Grouped(n.unsigned_abs()))
            }
            Value::Count(n) if self.unit == Unit::Grouped => Grouped(*n).to_string(),
            Value::Number(x) if self.unit == Unit::Rate => rate(*x),
            Value::Number(x) if self.unit == Unit::RateOfBytes => rate_of_bytes(*x),
            Value::Share(share) if self.unit == Unit::Hundredths => format!("{:.2}", share * 100.0),
            Value::Share(share) => percent(*share),
            Value::Ratio(ratio) => change::change(*ratio),
            Value::RatioInterval(low, high) => change::changes(*low, *high),
            Value::Bytes(size) => bytes(*size),
            Value::Shape(counts) => columns(counts),
            Value::Text(_) | Value::Count(_) | Value::Integer(_) | Value::Number(_) | Value::Truth(_) => {
                self.value.raw()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_in_the_unit_of_its_column() {
        let ns = Nanos(12_345_678);
        assert_eq!(Cell::scaled(ns, ns).written(), "12.3");
        assert_eq!(Cell::scaled(ns, Nanos(1_000_000_000)).written(), "0.012");
        assert_eq!([Cell::micros(ns), Cell::of(ns)].map(|cell| cell.written()), ["12346", "12.3 ms"]);
        assert_eq!([Cell::share(0.123), Cell::hundredths(0.123)].map(|cell| cell.written()), ["12%", "12.30"]);
        assert_eq!([Cell::rate(0.3), Cell::rate_of_bytes(1_500.0)].map(|cell| cell.written()), ["0.3", "1.50 kB"]);
        assert_eq!(Cell::scaled_interval(Some((-1_000_000, 2_000_000)), ns).written(), "[-1.0, +2.0]");
        assert_eq!(
            [Cell::grouped(0).blank_if_zero(), Cell::scaled(Nanos(0), ns).short_if_zero()]
                .map(|cell| cell.span().text().to_owned()),
            ["", "0"]
        );
    }

    #[test]
    fn programs_get_all_digits() {
        let values = [Value::Time(Nanos(12_345_678)), Value::Ratio(1.25), Value::Nothing, Value::Truth(true)];
        assert_eq!(values.each_ref().map(Value::raw), ["12345678", "1.25", "", "true"]);
        assert_eq!(values.map(|value| value.json().to_string()), ["12345678", "1.25", "null", "true"]);
    }
}
