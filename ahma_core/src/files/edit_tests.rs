use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use super::*;

fn edit(old: &str, new: &str) -> TextEdit {
    TextEdit {
        old: old.into(),
        new: new.into(),
        all: false,
    }
}

fn every(old: &str, new: &str) -> TextEdit {
    TextEdit {
        all: true,
        ..edit(old, new)
    }
}

fn applied(content: &str, edits: &[TextEdit]) -> Result<(String, Vec<(usize, usize)>), String> {
    let edited = apply(content.as_bytes(), edits).map_err(|error| error.to_string())?;
    Ok((String::from_utf8(edited.content).unwrap(), edited.changed))
}

#[test]
fn edits_apply_in_order_and_tell_their_lines() {
    let check = |content: &str, edits: &[TextEdit], expected: &str, changed: &[(usize, usize)]| {
        assert_eq!(
            applied(content, edits),
            Ok((expected.to_owned(), changed.to_vec()))
        );
    };
    check("a\nb\nc\n", &[edit("b", "x")], "a\nx\nc\n", &[(2, 2)]);
    check("a\nb\nc\n", &[edit("b\n", "x\ny\n")], "a\nx\ny\nc\n", &[(2, 3)]);
    check("a\nb\nc\n", &[edit("b\n", "")], "a\nc\n", &[(2, 2)]);
    check(
        "a\nb\n",
        &[edit("b", "x\ny"), edit("a", "1\n2")],
        "1\n2\nx\ny\n",
        &[(1, 2), (3, 4)],
    );
    check(
        "a\nb\n",
        &[edit("a", "b2"), edit("b2", "c")],
        "c\nb\n",
        &[(1, 1), (1, 1)],
    );
    check(
        "x x\nx\n",
        &[every("x", "yy")],
        "yy yy\nyy\n",
        &[(1, 1), (1, 1), (2, 2)],
    );
}

#[test]
fn line_endings_of_the_file_are_kept() {
    let check = |content: &str, edits: &[TextEdit], expected: &str| {
        assert_eq!(applied(content, edits).unwrap().0, expected);
    };
    check(
        "a\r\nb\r\nc\r\n",
        &[edit("a\nb", "x\ny\nz")],
        "x\r\ny\r\nz\r\nc\r\n",
    );
    check("a\r\nb\r\n", &[edit("b", "x\ny")], "a\r\nx\r\ny\r\n");
    check("a\nb\n", &[edit("a\r\nb", "x\r\ny")], "x\ny\n");
    // Mixed: a text that is there to the letter is taken to the letter.
    check("a\r\nb\r\nc\nd\n", &[edit("c\nd", "e\nf")], "a\r\nb\r\ne\nf\n");
}

#[test]
fn refusals_say_what_to_do() {
    let refused = |content: &str, edits: &[TextEdit]| applied(content, edits).unwrap_err();
    insta::assert_snapshot!(refused("a\na\na\n", &[edit("a", "b")]), @"`old` occurs 3 times (lines 1, 2, 3): add lines around it to make it unique, or set `all: true`");
    insta::assert_snapshot!(refused("aaa\n", &[edit("aa", "b")]), @"`old` occurs 2 times (lines 1, 1): add lines around it to make it unique, or set `all: true`");
    insta::assert_snapshot!(refused("aaa\n", &[every("aa", "b")]), @"`old` overlaps itself at line 1: it is not clear what to replace");
    insta::assert_snapshot!(refused("fn main() {\n    run();\n}\n", &[edit("fn main() {\n  run();\n}", "x")]), @r"
    `old` does not occur in the file
    nearest: line 1, which differs in white space only
    1	fn main() {
    2	    run();
    3	}
    ");
    insta::assert_snapshot!(refused("let count = 1;\nlet size = 2;\n", &[edit("let counts = 1;", "x")]), @r"
    `old` does not occur in the file
    nearest: line 1
    1	let count = 1;
    ");
    insta::assert_snapshot!(refused("fn main() {\n    print(sum(1, 2));\n}\n", &[edit("sum(1,2)", "x")]), @r"
    `old` does not occur in the file
    nearest: line 2, which differs in white space only
    2	    print(sum(1, 2));
    ");
    insta::assert_snapshot!(refused("fn main() {\n    print(sum_of(1, 2));\n}\n", &[edit("sumof(1, 2)", "x")]), @r"
    `old` does not occur in the file
    nearest: line 2
    2	    print(sum_of(1, 2));
    ");
    insta::assert_snapshot!(refused("abc\n", &[edit("zzzz", "y")]), @"`old` does not occur in the file; read the file again");
    insta::assert_snapshot!(refused("abc\n", &[edit("abc", "d"), edit("zzzz", "y")]), @"edit 2 of 2: `old` does not occur in the file; read the file again; nothing was changed");
    insta::assert_snapshot!(refused("abc\n", &[edit("", "d")]), @"`old` is empty: name the text to replace, or write the whole file with file_write");
    insta::assert_snapshot!(refused("abc\n", &[edit("b", "b")]), @"`old` and `new` are the same");
}

/// The same by the simplest means: one occurrence after another, counted by hand.
fn model(content: &str, edits: &[TextEdit]) -> Option<String> {
    let mut text = content.to_owned();
    for edit in edits {
        let places: Vec<usize> = (0..text.len())
            .filter(|at| text.is_char_boundary(*at) && text[*at..].starts_with(&edit.old))
            .collect();
        let overlap = places.windows(2).any(|pair| pair[1] - pair[0] < edit.old.len());
        if edit.old.is_empty() || edit.old == edit.new || places.is_empty() {
            return None;
        }
        if !edit.all && places.len() > 1 {
            return None;
        }
        if edit.all && places.len() == 2 && overlap {
            return None;
        }
        text = text.replace(&edit.old, &edit.new);
    }
    Some(text)
}

#[test]
fn ten_thousand_random_scripts_give_the_bytes_of_the_model() {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut changed = 0;
    for round in 0..10_000 {
        let mut text = |longest: usize| -> String {
            let letters = ['a', 'b', 'é', ' ', '\n'];
            (0..rng.random_range(0..=longest))
                .map(|_| letters[rng.random_range(0..letters.len())])
                .collect()
        };
        let content = text(40);
        let mut edits: Vec<TextEdit> = (0..3).map(|_| edit(&text(3), &text(4))).collect();
        for edit in &mut edits {
            edit.all = rng.random_bool(0.5);
        }
        edits.truncate(rng.random_range(1..=3));
        let ours = applied(&content, &edits).ok().map(|(text, _)| text);
        let expected = model(&content, &edits);
        // Three or more overlapping places are replaced from the left, as `replace` does.
        assert_eq!(ours, expected, "round {round}: {content:?} {edits:?}");
        changed += usize::from(expected.is_some());
    }
    assert!(changed > 500, "only {changed} scripts changed anything");
}
