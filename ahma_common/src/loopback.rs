//! Addresses that only this machine can reach.

use std::net::IpAddr;

/// True for a loopback address, also one of IPv4 in the form of IPv6.
#[must_use]
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The same for the host of an URL: `localhost`, `127.0.0.1`, `[::1]`. No name is resolved.
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost", true),
            ("127.0.0.1", true),
            ("127.8.9.10", true),
            ("[::1]", true),
            ("::1", true),
            ("[::ffff:127.0.0.1]", true),
            ("0.0.0.0", false),
            ("[::]", false),
            ("10.0.0.1", false),
            ("localhost.evil.example", false),
            ("example.org", false),
            ("", false),
        ] {
            assert_eq!(is_loopback_host(host), expected, "{host:?}");
        }
    }
}
