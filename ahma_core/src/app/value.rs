//! How single values of flags and variables are written: durations, sizes, switches.

use std::time::Duration;

/// `45s`, `500ms`, `10m`, `1h`; a bare number counts seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let milliseconds_per_unit = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(DURATION_FORM.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| DURATION_FORM.to_owned())?;
    number
        .checked_mul(milliseconds_per_unit)
        .map(Duration::from_millis)
        .ok_or_else(|| "is longer than can be counted".to_owned())
}

const DURATION_FORM: &str = "expected a duration such as 45s, 500ms, 10m or a number of seconds";

/// A duration that is not nothing.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than zero".to_owned()),
        duration => Ok(duration),
    }
}

/// `16384`, `16K`, `4M`; powers of 1024.
pub(crate) fn byte_count(text: &str) -> Result<usize, String> {
    const FORM: &str = "expected a number of bytes such as 16384, 16K or 4M";
    let (number, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1024),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1024 * 1024),
        _ => (text, 1),
    };
    let number: usize = number.parse().map_err(|_| FORM.to_owned())?;
    number.checked_mul(factor).ok_or_else(|| FORM.to_owned())
}

/// The value of a switch's variable. Anything that is not clearly a yes or a no is refused, because some switches take
/// protection away; set but empty is a no.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("expected 1, true, yes, on or 0, false, no, off".to_owned()),
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
