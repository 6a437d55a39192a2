use super::{BUILT_IN, of};

#[test]
fn only_a_program_and_plain_words_are_taken() {
    for (text, program) in [
        ("git status", Some("git")),
        (" ls -la src/lib.rs ", Some("ls")),
        ("cargo test -p a --features=b,c", Some("cargo")),
        ("7z", Some("7z")),
        ("", None),
        ("echo hi", None),
        ("test -e x", None),
        ("A=b env", None),
        ("./run", None),
        ("-x", None),
        ("ls *.rs", None),
        ("ls ~", None),
        ("ls; pwd", None),
        ("ls\npwd", None),
        ("sleep 5 &", None),
        ("ls > x", None),
        ("ls $HOME", None),
        ("ls 'a b'", None),
        ("ls {1,2}", None),
        ("ls # all", None),
        ("! ls", None),
        ("time ls", None),
    ] {
        assert_eq!(of(text), program, "{text:?}");
    }
}

#[test]
fn the_list_is_in_order() {
    assert!(BUILT_IN.is_sorted());
}
