//! Numbers of an exposition as Prometheus' parsers read them, with Go's `strconv`, which rejects
//! some numbers that Rust accepts.

/// Returns true for a valid value: `NaN` without a sign, `Inf` with or without a sign, or a decimal
/// number that is not too large for a float. Hexadecimal digits and underscores are invalid.
pub(super) fn is_value(text: &str) -> bool {
    match text.parse::<f64>() {
        Ok(value) if value.is_nan() => !text.starts_with(['+', '-']),
        // Go rejects `1e999` as out of range.
        Ok(value) if value.is_infinite() => !text.bytes().any(|byte| byte.is_ascii_digit()),
        parsed => parsed.is_ok(),
    }
}

/// Returns true for a timestamp of the text format: an integer in milliseconds. Prometheus' parser
/// accepts no sign.
pub(super) fn is_millis(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_ok()
}

/// Returns true for a timestamp of OpenMetrics, which is in seconds.
pub(super) fn is_seconds(text: &str) -> bool {
    is_value(text) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Converts seconds of OpenMetrics to milliseconds of the text format; `None` if they are out of
/// range.
pub(super) fn millis(seconds: &str) -> Option<u64> {
    /// 2⁶³, the smallest number that is too large.
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    let millis = (seconds.parse::<f64>().ok()? * 1000.0).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value was rounded and is in range"
    )]
    (0.0..TOO_LARGE).contains(&millis).then_some(millis as u64)
}

#[cfg(test)]
mod tests;
