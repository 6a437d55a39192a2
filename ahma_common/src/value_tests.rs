use super::*;

#[test]
fn durations_are_read_with_their_unit() {
    for (text, expected) in [
        ("45s", Some(45_000)),
        ("45", Some(45_000)),
        ("500ms", Some(500)),
        ("10m", Some(600_000)),
        ("1h", Some(3_600_000)),
        ("30d", Some(2_592_000_000)),
        ("0", Some(0)),
        ("", None),
        ("s", None),
        ("-1s", None),
        ("1.5s", None),
        ("1w", None),
        ("18446744073709551615h", None),
    ] {
        assert_eq!(
            duration(text).ok().map(|duration| duration.as_millis()),
            expected,
            "{text:?}"
        );
    }
    assert!(positive_duration("0s").is_err());
}

#[test]
fn sizes_are_powers_of_1024() {
    for (text, expected) in [
        ("16384", Some(16_384)),
        ("16K", Some(16_384)),
        ("4m", Some(4 * 1024 * 1024)),
        ("", None),
        ("K", None),
        ("1G", Some(1 << 30)),
        ("1T", None),
        ("1KB", None),
        ("-1", None),
        ("18446744073709551615M", None),
    ] {
        assert_eq!(byte_count(text).ok(), expected, "{text:?}");
    }
    assert!(positive_byte_count("0K").is_err());
    assert_eq!(positive_byte_count("1K"), Ok(1024));
}

#[test]
fn a_count_is_at_least_one_and_can_be_counted_to() {
    for (text, expected) in [
        ("1", Some(1)),
        ("4294967295", Some(4_294_967_295)),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("18446744073709551615", None),
    ] {
        assert_eq!(positive_count(text).ok(), expected, "{text:?}");
    }
}

#[test]
fn a_number_is_greater_than_zero_and_finite() {
    for (text, expected) in [
        ("1.5", Some(1.5)),
        ("2", Some(2.0)),
        ("0", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("much", None),
    ] {
        assert_eq!(positive_number(text).ok(), expected, "{text:?}");
    }
}

#[test]
fn a_doubtful_switch_is_refused_and_an_empty_one_is_off() {
    for (text, expected) in [
        ("1", Some(true)),
        ("True", Some(true)),
        ("on", Some(true)),
        ("0", Some(false)),
        ("", Some(false)),
        ("no", Some(false)),
        ("nope", None),
        ("2", None),
    ] {
        assert_eq!(switch(text).ok(), expected, "{text:?}");
    }
}

#[test]
fn an_address_to_listen_on_is_a_number_or_this_machine() {
    for (text, expected) in [
        ("127.0.0.1", Some("127.0.0.1")),
        ("localhost", Some("127.0.0.1")),
        ("0.0.0.0", Some("0.0.0.0")),
        ("::1", Some("::1")),
        ("[::1]", Some("::1")),
        ("localhost.evil.com", None),
        ("example.org", None),
        ("", None),
    ] {
        let found = listening_host(text).ok().map(|address| address.to_string());
        assert_eq!(found.as_deref(), expected, "{text:?}");
    }
}
