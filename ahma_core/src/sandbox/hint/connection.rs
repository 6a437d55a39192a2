//! Guesses about connections that a limited network refuses.

use super::guess::{HintContext, guess as labelled};
use crate::sandbox::Network;

/// Said when the address of a name is not found.
const NAMES: &[&str] = &[
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "eai_again",
];

/// Said only of connections, whatever the reason.
const FAILURES: &[&str] = &[
    "network is unreachable",
    "enetunreach",
    "failed to connect to",
    "couldn't connect to server",
];

/// Words near a refusal that tell that a connection was refused.
pub(super) const CALLS: &[&str] = &[
    "socket",
    "connect:",
    "connect(",
    "'connect'",
    "connect e",
    "connect to",
    "connecting to",
    "urlopen",
    "dial tcp",
    "dial udp",
    "/dev/tcp/",
    "/dev/udp/",
];

/// A line, in lower case, is about a connection and not about a file.
pub(super) fn is_meant(lower: &str, refused: bool) -> bool {
    NAMES.iter().chain(FAILURES).any(|words| lower.contains(words))
        || (refused && CALLS.iter().any(|words| lower.contains(words)))
}

/// The rule of the network and how to change it; none if the network cannot be the reason.
pub(super) fn guess(line: &str, around: HintContext<'_>) -> Option<String> {
    let destination = destination(line);
    if around.reads_only {
        let what = match destination {
            Some((host, port)) => format!("{host} port {port} was not reached"),
            None => "a connection was refused".to_owned(),
        };
        return Some(labelled(
            &what,
            "readonly_shell reaches no network: use sandboxed_shell",
        ));
    }
    let (rule, remedy) = match &around.policy.network {
        Network::Open => return None,
        Network::Loopback => (
            "only the commands' own loopback interface is reachable (--network loopback)".to_owned(),
            "--network open".to_owned(),
        ),
        Network::Off => (
            "the network is closed (--network off)".to_owned(),
            "--network open".to_owned(),
        ),
        Network::Ports(_) if is_name(line) => (
            "names are looked up over UDP, and only TCP connections to listed ports are open (--allow-connect)".to_owned(),
            "--network open, or use addresses instead of names".to_owned(),
        ),
        Network::Ports(open) => {
            let port = destination.as_ref().map(|(_, port)| *port);
            if port.is_some_and(|port| open.contains(&port)) {
                return None;
            }
            let open: Vec<_> = open.iter().map(u16::to_string).collect();
            (
                format!("only TCP connections to port {} are open (--allow-connect)", open.join(", ")),
                match port {
                    Some(port) => format!("--allow-connect {port} as well"),
                    None => "--allow-connect PORT for each port it needs".to_owned(),
                },
            )
        }
    };
    let what = match destination {
        Some((host, port)) => format!("{host} port {port} was not reached, and {rule}"),
        None => rule,
    };
    Some(labelled(
        &what,
        &format!("Ask the user to start ahma_mcp with {remedy}"),
    ))
}

fn is_name(line: &str) -> bool {
    let lower = line.to_lowercase();
    NAMES.iter().any(|words| lower.contains(words))
}

/// Host and port, as `curl`, shells and most others write them.
pub(super) fn destination(line: &str) -> Option<(&str, u16)> {
    let words: Vec<&str> = line
        .split(|character: char| character.is_whitespace() || "'\"`,;()<>".contains(character))
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| !word.is_empty())
        .collect();
    let device = |word: &str| -> Option<usize> {
        ["/dev/tcp/", "/dev/udp/"]
            .iter()
            .find(|prefix| word.starts_with(**prefix))
            .map(|prefix| prefix.len())
    };
    words.iter().enumerate().find_map(|(index, word)| {
        if let Some(start) = device(word) {
            let (host, port) = word[start..].split_once('/')?;
            return Some((host, port.parse().ok()?));
        }
        if *word == "port" && index > 0 {
            return Some((words[index - 1], words.get(index + 1)?.parse().ok()?));
        }
        let (host, port) = word.rsplit_once(':')?;
        let is_host = host == "localhost" || (host.contains(['.', ':']) && !host.contains('/'));
        is_host.then_some((host, port.parse().ok()?))
    })
}
