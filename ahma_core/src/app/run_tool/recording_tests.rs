use super::*;

#[test]
fn pieces_have_their_stream_and_their_line_ends() {
    let recording = Recording::begin(Vec::new(), "scan x");
    let mut state = recording.state.into_inner();
    let at = Duration::from_millis(1_234);
    state.take(StreamName::Stderr, b"\r 10%", at);
    state.take(StreamName::Stdout, b"one\ntwo ", at);
    state.take(StreamName::Stdout, &[0xc3], at);
    state.take(StreamName::Stdout, &[0xa4, b'\n'], at);
    state.take(StreamName::Stderr, b"\x1b[2K\r\n", at);
    let text = String::from_utf8(state.to).unwrap();
    assert_eq!(
        text,
        "# cmd: scan x   [pipes]\n\
         +1.23 err| \\r 10%\n\
         +1.23 out| one\\n\n\
         +1.23 out| two \n\
         +1.23 out| \u{e4}\\n\n\
         +1.23 err| \\x1b[2K\\r\\n\n"
    );
}
