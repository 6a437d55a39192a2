use super::*;

#[test]
fn the_packaged_profile_is_this_one() {
    let packaged = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/apparmor/ahma_mcp");
    assert_eq!(std::fs::read_to_string(packaged).unwrap(), PACKAGED);
    assert_eq!(profile(Path::new(PACKAGED_PROGRAM)), PACKAGED);
}

#[test]
fn the_profile_names_the_program_and_nothing_like_it() {
    let text = profile(Path::new("/home/me/my {tools}/ahma_*"));
    assert!(
        text.contains(r#"profile ahma_mcp "/home/me/my \{tools\}/ahma_\*" flags"#),
        "{text}"
    );
}
