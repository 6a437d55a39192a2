//! The names that others see: ours, and those of mounted tools.

/// The name under which this client introduces itself, to MCP servers whose tools it mounts and to authorization servers.
pub const CLIENT_NAME: &str = ahma_common::contract::PRODUCT;

/// Length that all clients accept.
const MAX_NAME: usize = 64;

/// `{server}_{tool}`, made of letters, digits, `_` and `-` only and at most 64 long.
///
/// A name that has to be cut ends in a hash of the whole, so that two of them stay different.
pub fn mounted_name(server: &str, tool: &str) -> String {
    let whole = format!("{server}_{tool}");
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name: String = whole.chars().map(allowed).collect();
    if name.len() <= MAX_NAME {
        return name;
    }
    let hash = format!("_{:08x}", fnv1a(&whole) as u32);
    format!("{}{hash}", &name[..MAX_NAME - hash.len()])
}

/// A hash on which every build of this program agrees.
pub(crate) fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_stay_different() {
        assert_eq!(mounted_name("jira", "get-issue"), "jira_get-issue");
        assert_eq!(mounted_name("My Server", "a.b/ü"), "My_Server_a_b__");
        let (long, longer) = (
            mounted_name("s", &"x".repeat(80)),
            mounted_name("s", &"x".repeat(81)),
        );
        assert_eq!((long.len(), longer.len()), (64, 64));
        assert_ne!(long, longer);
    }
}
