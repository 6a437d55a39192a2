use super::*;
use crate::call::Command;

fn told(program: Program, stdin: Option<&str>) -> Option<String> {
    let command = Command {
        stdin: stdin.map(str::to_owned),
        ..Command::new(program)
    };
    read_nothing(&Work::Command(command))
}

#[test]
fn a_program_that_reads_standard_input_is_named() {
    for (script, program) in [
        ("cat", Some("cat")),
        ("cat | wc -l", Some("cat")),
        ("cd src && python3", Some("python3")),
        ("echo a; grep word", Some("grep")),
        ("LANG=C /usr/bin/sort -u", Some("sort")),
        ("head -n 5", Some("head")),
        ("read x; echo got $x", Some("read")),
        ("python3 -", Some("python3")),
        ("cat file", None),
        ("echo a | cat", None),
        ("grep -rn word", None),
        ("grep word src", None),
        ("python3 -c 'print(1)'", None),
        ("python3 --version", None),
        ("cat < file", None),
        ("cat <<EOF\na\nEOF", None),
        ("{ read a; read b; }", None),
        ("false || true", None),
        ("echo cat", None),
        ("", None),
    ] {
        let hint = told(Program::Script(script.to_owned()), None);
        let expected = program.map(|program| format!("`{program}` read standard input"));
        assert_eq!(
            hint.as_deref()
                .map(|hint| hint.split(',').next().unwrap().to_owned()),
            expected,
            "{script}"
        );
        assert_eq!(
            told(Program::Script(script.to_owned()), Some("")),
            None,
            "{script}"
        );
    }
    let argv = |words: &[&str]| Program::Argv(words.iter().map(|word| (*word).to_owned()).collect());
    assert!(told(argv(&["python3"]), None).is_some());
    assert!(told(argv(&["python3", "a b.py"]), None).is_none());
}
