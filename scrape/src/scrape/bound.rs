//! Writes `le` and `quantile` as Prometheus 3 stores them.

use super::line::is_value;

/// Returns a number in the notation of Go's verb `%g`, with `.0` if it would look like an integer:
/// `1.0`, `0.005`, `1e+06`, `+Inf`. `None` if `text` is no number.
pub(super) fn normalized(text: &str) -> Option<String> {
    let value: f64 = text.parse().ok().filter(|_| is_value(text))?;
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    if value.is_infinite() {
        return Some(if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned());
    }
    // There is no `-0.0`.
    let value = value + 0.0;
    // `{:e}` has the fewest digits that identify the number, for example `1.5e-7`.
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return Some(format!("{digits}e{sign}{:02}", exponent.abs()));
    }
    let plain = value.to_string();
    Some(if plain.contains('.') { plain } else { plain + ".0" })
}

#[cfg(test)]
mod tests;
