//! PURE. The numbers of an exposition, as the parsers of Prometheus read them: those are Go's `strconv`, which refuses some that
//! Rust takes.

/// Is this a value? `NaN` without a sign, `Inf` with or without one, and no number that is too large for a float. No hexadecimal
/// digits, no underscores.
pub(super) fn is_value(text: &str) -> bool {
    match text.parse::<f64>() {
        Ok(value) if value.is_nan() => !text.starts_with(['+', '-']),
        // Go calls `1e999` out of range.
        Ok(value) if value.is_infinite() => !text.bytes().any(|byte| byte.is_ascii_digit()),
        parsed => parsed.is_ok(),
    }
}

/// Is this a timestamp of the text format: milliseconds, a whole number? Prometheus' parser takes no sign.
pub(super) fn is_millis(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_ok()
}

/// Is this a timestamp of OpenMetrics: seconds?
pub(super) fn is_seconds(text: &str) -> bool {
    is_value(text) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Seconds of OpenMetrics as milliseconds of the text format. `None`: text has no such timestamp.
pub(super) fn millis(seconds: &str) -> Option<u64> {
    /// 2⁶³, the first that is too large.
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    let millis = (seconds.parse::<f64>().ok()? * 1000.0).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is in range, and was rounded before"
    )]
    (0.0..TOO_LARGE).contains(&millis).then_some(millis as u64)
}

#[cfg(test)]
mod tests;
