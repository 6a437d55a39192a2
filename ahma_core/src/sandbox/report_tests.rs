use super::nothing_left;
use crate::sandbox::{Platform, Tier};

#[test]
fn daemons_are_promised_only_where_they_can_be_found() {
    for (tier, platform, enforced) in [
        (Tier::Full, Platform::Linux, true),
        (Tier::Off, Platform::Linux, true),
        (Tier::Seatbelt, Platform::MacOs, true),
        (Tier::Off, Platform::MacOs, false),
    ] {
        let promise = nothing_left(tier, platform);
        assert_eq!(promise.enforced, enforced, "{tier:?} {platform:?}");
    }
}
