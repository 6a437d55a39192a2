use super::*;

/// The rows of a text, printed in pieces of every size.
fn check(printed: &str, expected: &[&str]) {
    for size in 1..=printed.len().max(1) {
        let mut terminal = Terminal::new(1);
        for piece in printed.as_bytes().chunks(size) {
            terminal.print(piece);
        }
        let rows: Vec<String> = terminal.rows().map(|row| row.render().into_string()).collect();
        let inner = |row: &String| {
            let start = row.find('>').unwrap() + 1;
            row[start..row.len() - "</div>".len()].to_owned()
        };
        let rows: Vec<String> = rows.iter().map(inner).collect();
        assert_eq!(rows, expected, "{printed:?} by {size}");
    }
}

#[test]
fn text_stays_as_it_is() {
    check("one\ntwo\n\nfour", &["one", "two", "", "four"]);
    check("dos\r\nlines\r\n", &["dos", "lines"]);
    check("a\tb", &["a       b"]);
    check("grün ✓ 日本", &["grün ✓ 日本"]);
}

#[test]
fn of_what_is_drawn_again_the_last_state_is_left() {
    check("10%\r50%\r100%\ndone\n", &["100%", "done"]);
    check("loading...\r\u{1b}[Kok\n", &["ok"]);
    check("abc\u{8}\u{8}X\n", &["aXc"]);
    // Two bars, one above the other.
    check("a 0%\nb 0%\n\u{1b}[2Aa 9%\nb 9%\nend\n", &["a 9%", "b 9%", "end"]);
    check("one\ntwo\n\u{1b}[1A\u{1b}[2Kthree\n", &["one", "three"]);
    check("one\u{1b}[2J\u{1b}[Htwo", &["onetwo"]);
    check("keep\nold\nold\n\u{1b}[2A\u{1b}[J", &["keep", "", ""]);
}

#[test]
fn colours_become_classes() {
    check(
        "\u{1b}[31mred\u{1b}[0m \u{1b}[1;92mgreen\u{1b}[m",
        &[r#"<span class="f1">red</span> <span class="f10 bold">green</span>"#],
    );
    check(
        "\u{1b}[38;5;196mr\u{1b}[48;2;0;0;200mb",
        &[r#"<span class="f9">r</span><span class="f9 b12">b</span>"#],
    );
    // They go on from line to line.
    check(
        "\u{1b}[4mone\ntwo\u{1b}[24m!",
        &[
            r#"<span class="underline">one</span>"#,
            r#"<span class="underline">two</span>!"#,
        ],
    );
}

#[test]
fn nothing_a_command_prints_acts_in_the_page() {
    check(
        "<script>alert(1)</script>&\"'",
        &["&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;'"],
    );
    // Titles, links and the like are for terminals.
    check(
        "\u{1b}]0;title\u{7}a\u{1b}]8;;javascript:x\u{1b}\\link\u{1b}]8;;\u{1b}\\",
        &["alink"],
    );
    check("\u{1b}P+q544e\u{1b}\\text", &["text"]);
    check("\u{1b}]never ends\nnext", &["", "next"]);
    check("\u{1b}(Bplain\u{1b}=\u{1b}[?25l", &["plain"]);
    check(
        "a\u{202e}b",
        &[r#"a<span class="hidden-character">U+202E</span>b"#],
    );
    check(
        "a\u{0}\u{9b}",
        &[r#"a<span class="hidden-character">U+0000</span><span class="hidden-character">U+009B</span>"#],
    );
}

#[test]
fn what_is_not_text_is_marked_and_costs_little() {
    let mut terminal = Terminal::new(1);
    terminal.print(b"\xff\xfe ok \xc3");
    terminal.print(b"\xbc\n");
    let row = terminal.rows().next().unwrap().render().into_string();
    assert!(row.contains("\u{fffd}\u{fffd} ok ü"), "{row}");
    // A jump far to the right, in every one of many rows, must not fill memory.
    let mut terminal = Terminal::new(1);
    terminal.print("\u{1b}[65535Cx\n".repeat(500).as_bytes());
    assert!(terminal.rows().all(|row| row.cells.len() <= MAX_COLUMNS));
    terminal.print(&vec![b'y'; 10_000]);
    assert_eq!(terminal.rows().last().unwrap().cut, 9_000);
}

#[test]
fn only_what_changed_is_told_again() {
    let mut terminal = Terminal::new(7);
    terminal.print(b"one\ntwo");
    assert_eq!(terminal.changed_rows().len(), 2);
    terminal.print(b" more");
    let changed = terminal.changed_rows();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].0, r#"<div id="L8" data-n="8">two more</div>"#);
    assert!(terminal.changed_rows().is_empty());
    terminal.print("x\n".repeat(1_000).as_bytes());
    terminal.changed_rows();
    assert!(terminal.rows.len() <= OPEN_ROWS, "{}", terminal.rows.len());
    terminal.print(b"end\n");
    assert_eq!(
        terminal.changed_rows()[0].0,
        r#"<div id="L1008" data-n="1008">end</div>"#
    );
}
