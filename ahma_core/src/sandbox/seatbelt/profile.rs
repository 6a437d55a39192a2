//! The Seatbelt profile for macOS: a pure function from a policy to text for `sandbox-exec -p`.
//!
//! Every filter stands on the line of its statement: `sandbox-exec` aborts on filters that are broken over lines. Paths
//! are written as the kernel sees them, as `/var` is a link there, and as escaped string literals so that no path can
//! add a rule.
//!
//! Nothing starts commands under it yet: `jail` is made of what Linux has. It is the policy's second form, kept true by
//! its tests.

use std::{borrow::Cow, fmt::Write, path::Path};

use crate::sandbox::{Access, Network, Policy, sensitive::SENSITIVE};

/// Which reads are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Everything but what other rules deny: shells and toolchains need broad read access there.
    Broad,
    /// Without the places where people keep keys and tokens.
    WithoutSensitive,
}

/// The profile.
pub fn profile(policy: &Policy, home: Option<&Path>, reads: Reads) -> String {
    let mut text = String::from("(version 1)\n(deny default)\n");
    let mut rule = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    rule("(allow process-exec)");
    rule("(allow process-fork)");
    rule("(allow process-info* (target same-sandbox))");
    rule("(allow signal (target same-sandbox))");
    rule("(allow sysctl-read)");
    rule("(allow file-read*)");
    rule("(allow file-ioctl (literal \"/dev/tty\"))");
    for device in ["/dev/null", "/dev/zero", "/dev/tty", "/dev/stdout", "/dev/stderr"] {
        rule(&format!(
            "(allow file-write* (literal {}))",
            literal(Path::new(device))
        ));
    }
    if policy.scope_access == Access::Write {
        rule(&format!(
            "(allow file-write* (subpath {}))",
            literal(&policy.scope)
        ));
    }
    rule(&format!(
        "(allow file-write* (subpath {}))",
        literal(&policy.temp())
    ));
    if policy.host_temp {
        rule("(allow file-write* (subpath \"/private/tmp\"))");
        rule("(allow file-write* (subpath \"/private/var/folders\"))");
    }
    for grant in policy.grants.iter().filter(|grant| grant.access == Access::Write) {
        rule(&format!("(allow file-write* (subpath {}))", literal(&grant.path)));
    }
    // Later rules win: these close again what lies inside the scope.
    for path in policy.protected.iter().filter(|path| !path.ends_with(".git")) {
        rule(&format!("(deny file-write* (subpath {}))", literal(path)));
    }
    rule(&format!(
        "(deny file-write-unlink (literal {}))",
        literal(&policy.scope.join(".git"))
    ));
    rule(&format!(
        "(deny file-write-unlink (literal {}))",
        literal(&policy.scope)
    ));
    if reads == Reads::WithoutSensitive
        && let Some(home) = home
    {
        for place in SENSITIVE {
            rule(&format!(
                "(deny file-read* (subpath {}))",
                literal(&home.join(place))
            ));
        }
    }
    match &policy.network {
        Network::Open => rule("(allow network*)"),
        Network::Loopback => rule("(allow network* (local ip \"localhost:*\") (remote ip \"localhost:*\"))"),
        Network::Off => {}
        Network::Ports(ports) => {
            for port in ports {
                rule(&format!("(allow network-outbound (remote tcp \"*:{port}\"))"));
            }
            rule("(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))");
        }
    }
    if policy.network != Network::Off {
        // A container engine's socket is root, an agent's socket is the user's keys.
        rule("(deny network-outbound (subpath \"/private/var/run/docker.sock\"))");
        rule("(deny network-outbound (regex #\"/(agent\\.[0-9]+|docker\\.sock|Listeners)$\"))");
    }
    for service in [
        "com.apple.system.opendirectoryd.libinfo",
        "com.apple.system.notification_center",
        "com.apple.SecurityServer",
    ] {
        rule(&format!("(allow mach-lookup (global-name \"{service}\"))"));
    }
    text
}

/// A string literal: quotes and backslashes escaped, control characters as octal, so that a path is only ever a path.
fn literal(path: &Path) -> String {
    let mut text = String::from("\"");
    for character in real(path).to_string_lossy().chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            control if control.is_control() => {
                write!(text, "\\x{:02x}", u32::from(control)).ok();
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// Three directories of every macOS are links into `/private`, and a rule that names the link matches nothing.
fn real(path: &Path) -> Cow<'_, Path> {
    let is_linked = ["/etc", "/tmp", "/var"].iter().any(|link| path.starts_with(link));
    match path.strip_prefix("/") {
        Ok(below) if is_linked => Path::new("/private").join(below).into(),
        _ => path.into(),
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
