//! Parsers for single values of flags and variables: durations, sizes, numbers, switches, addresses.

use std::{
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU32,
    time::Duration,
};

/// `45s`, `500ms`, `10m`, `1h`, `30d`; a bare number counts seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let milliseconds_per_unit = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(DURATION_FORM.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| DURATION_FORM.to_owned())?;
    number
        .checked_mul(milliseconds_per_unit)
        .map(Duration::from_millis)
        .ok_or_else(|| "is longer than can be counted".to_owned())
}

const DURATION_FORM: &str = "expected a duration such as 45s, 500ms, 10m, 1h, 30d or a number of seconds";

/// A duration longer than zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than zero".to_owned()),
        duration => Ok(duration),
    }
}

/// `16384`, `16K`, `4M`, `2G`; powers of 1024.
pub fn byte_count(text: &str) -> Result<usize, String> {
    const FORM: &str = "expected a number of bytes such as 16384, 16K, 4M or 2G";
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return Err(FORM.to_owned()),
    };
    let number: usize = digits.parse().map_err(|_| FORM.to_owned())?;
    number.checked_mul(factor).ok_or_else(|| FORM.to_owned())
}

/// A size of at least one byte.
pub fn positive_byte_count(text: &str) -> Result<usize, String> {
    match byte_count(text)? {
        0 => Err("must be more than zero".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A count of at least one.
pub fn positive_count(text: &str) -> Result<usize, String> {
    let count = text.parse::<NonZeroU32>().ok();
    count
        .and_then(|count| usize::try_from(count.get()).ok())
        .ok_or_else(|| format!("expected a number from 1 to {}", u32::MAX))
}

/// `0.5`, `2`; not zero, not infinite.
pub fn positive_number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("expected a number greater than 0 such as 0.5 or 2".to_owned()),
    }
}

/// An address to listen on. `localhost` is one too, whatever a resolver would make of it.
pub fn listening_host(text: &str) -> Result<IpAddr, String> {
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse()
        .map_err(|_| "expected an IP address such as 127.0.0.1 or 0.0.0.0, or localhost".to_owned())
}

/// The value of a switch's variable. Anything that is not clearly a yes or a no is refused, because some switches take
/// protection away; set but empty is a no.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("expected 1, true, yes, on or 0, false, no, off".to_owned()),
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
