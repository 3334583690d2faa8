//! Amounts of a resource as Kubernetes writes them: `100m`, `1.5`, `128Mi`, `1e3`.

use std::fmt;

use serde_json::Value;

/// The unit in which amounts are kept; Kubernetes rounds up to it as well.
const NANOS: i128 = 1_000_000_000;
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The decimal suffixes from 1e-9 on, in steps of 1000.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// An amount of a resource. It is displayed with binary suffixes if it was read with one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    nanos: i128,
    binary: bool,
}

impl Quantity {
    pub(super) const ZERO: Self = Self { nanos: 0, binary: false };

    /// Reads a string or a number. Returns `None` if Kubernetes rejects it, or if it is out of range.
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        let digits: i128 = digits.parse().ok()?;
        let unit = Unit::parse(suffix)?;
        let exponent = unit.ten.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(9)?;
        let scaled = digits.checked_mul(unit.two)?;
        let nanos = if exponent >= 0 {
            scaled.checked_mul(power_of_ten(exponent)?)?
        } else {
            let divisor = power_of_ten(-exponent)?;
            scaled / divisor + i128::from(scaled % divisor != 0)
        };
        Some(Self { nanos: if negative { -nanos } else { nanos }, binary: unit.two > 1 })
    }

    pub(super) fn is_positive(self) -> bool {
        self.nanos > 0
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos), binary: self.binary || other.binary }
    }

    pub(super) fn exceeds(self, other: Self) -> bool {
        self.nanos > other.nanos
    }

    pub(super) fn equals(self, other: Self) -> bool {
        self.nanos == other.nanos
    }

    pub(super) fn max(self, other: Self) -> Self {
        if other.exceeds(self) { other } else { self }
    }
}

fn power_of_ten(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// What a number is multiplied by: a power of ten and a power of two.
struct Unit {
    ten: i32,
    two: i128,
}

impl Unit {
    fn parse(suffix: &str) -> Option<Self> {
        if let Some(index) = BINARY.iter().position(|known| *known == suffix) {
            return Some(Self { ten: 0, two: 1 << (10 * (index + 1)) });
        }
        if let Some(index) = DECIMAL.iter().position(|known| *known == suffix) {
            return Some(Self { ten: i32::try_from(index * 3).ok()? - 9, two: 1 });
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?;
        Some(Self { ten: exponent.parse().ok()?, two: 1 })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        if self.nanos == 0 {
            return formatter.write_str("0");
        }
        let divides = |unit: i128| self.nanos % unit == 0;
        if self.binary
            && let Some(index) = (0..BINARY.len()).rev().find(|index| divides(NANOS << (10 * (index + 1))))
        {
            return write!(formatter, "{}{}", self.nanos / (NANOS << (10 * (index + 1))), BINARY[index]);
        }
        let unit = |index: usize| 1000_i128.pow(u32::try_from(index).unwrap_or_default());
        let index = (0..DECIMAL.len()).rev().find(|index| divides(unit(*index))).unwrap_or(0);
        write!(formatter, "{}{}", self.nanos / unit(index), DECIMAL[index])
    }
}

#[cfg(test)]
mod tests;
