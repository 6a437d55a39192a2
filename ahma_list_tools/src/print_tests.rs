use crate::print::visible;

#[test]
fn a_server_cannot_command_the_terminal() {
    assert_eq!(visible("a\u{1b}[2Jb\r\u{9b}c"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c");
    assert_eq!(visible("grüße ✓"), "grüße ✓");
}
