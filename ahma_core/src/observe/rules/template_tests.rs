use regex::Regex;
use serde_json::{Value, json};

use super::{
    field::{CallArguments, Content, Field, Piece, XmlPath},
    pattern::Pattern,
    template::{Template, TextSource},
};
use crate::observe::{Severity, framing::Element};

fn json_source(template: &str) -> TextSource {
    let template = Template::parse(template, |reference| Ok(Field::Pointer(reference.to_owned()))).unwrap();
    TextSource {
        template,
        map: [].into(),
        default: None,
    }
}

fn json_piece(value: &Value) -> Piece<'_> {
    static NO_ARGUMENTS: CallArguments = CallArguments::new();
    Piece {
        content: Content::Json { value, around: &[] },
        arguments: &NO_ARGUMENTS,
    }
}

#[track_caller]
fn check(template: &str, expected: Option<&str>) {
    let value = json!({
        "file": "src/a.rs", "line": 7, "ok": true, "nothing": null, "padded": "  x \n", "list": [1, "b"], "a/b": "slash"
    });
    assert_eq!(
        json_source(template).text(&json_piece(&value), 500).as_deref(),
        expected,
        "{template}"
    );
}

#[test]
fn fields_are_filled_in_and_missing_ones_take_their_separators_along() {
    check("{/file}:{/line}:{/column}", Some("src/a.rs:7"));
    check("{/gone}:{/gone}", None);
    check("at {/file}", Some("at src/a.rs"));
    check("done: {/gone}", Some("done"));
    check("{/nothing}", None);
    check("[{/padded}]", Some("[x]"));
    check("{/list}", Some(r#"[1,"b"]"#));
    check("{/list/1}", Some("b"));
    check("{/a~1b} {/ok}", Some("slash true"));
    check("{{{/line}}}", Some("{7}"));
    check("literal:", Some("literal:"));
}

#[test]
fn broken_braces_are_refused() {
    for text in ["{", "a {b", "}", "a } b", "{a}}"] {
        assert!(Template::parse(text, |_| Ok(Field::Whole)).is_err(), "{text}");
    }
}

#[test]
fn numbers_and_times_are_read_as_tools_write_them() {
    let read = |text: &str| {
        let value = json!({ "v": text });
        let source = json_source("{/v}");
        (
            source.number(&json_piece(&value)),
            source.seconds(&json_piece(&value)),
        )
    };
    assert_eq!(read("54.9%"), (Some(54.9), None));
    for (text, number) in [
        ("1,234", 1234.0),
        ("-1,234,567.8", -1_234_567.8),
        ("1_234", 1234.0),
        ("12,5%", 12.5),
        ("0,125", 0.125),
        ("1234,5", 1234.5),
        ("1.234,5", 1234.5),
        ("99,99 %", 99.99),
    ] {
        assert_eq!(read(text), (Some(number), None), "{text}");
    }
    assert_eq!(read("0:00:08"), (None, Some(8.0)));
    assert_eq!(read("1:02:03.5"), (None, Some(3723.5)));
    assert_eq!(read("90s"), (None, Some(90.0)));
    for nonsense in ["NaN", "inf", "-inf", "1e999", "five", "1,2,3", "12,34.5", ",", ""] {
        assert_eq!(read(nonsense), (None, None), "{nonsense}");
    }
}

#[test]
fn severities_are_normalised() {
    let with_default = |default: Option<&str>, word: &str| {
        let value = json!({ "v": word });
        let source = TextSource {
            default: default.map(str::to_owned),
            ..json_source("{/v}")
        };
        source.severity(&json_piece(&value))
    };
    for (word, expected) in [
        ("CRITICAL", Severity::Critical),
        ("Error", Severity::High),
        ("moderate", Severity::Medium),
        ("note", Severity::Low),
        ("none", Severity::Info),
        ("9.8", Severity::Critical),
        ("7", Severity::High),
        ("0.0", Severity::Info),
        ("11", Severity::Info),
        ("weird", Severity::Info),
        ("", Severity::Info),
    ] {
        assert_eq!(with_default(None, word), expected, "{word}");
    }
    assert_eq!(with_default(Some("low"), "weird"), Severity::Low);
    assert_eq!(with_default(Some("low"), "high"), Severity::High);
}

#[test]
fn a_map_translates_and_the_default_stands_in() {
    let source = |default: Option<&str>| TextSource {
        map: [("E".to_owned(), "high".to_owned())].into(),
        default: default.map(str::to_owned),
        ..json_source("{/v}")
    };
    let text = |source: TextSource, word: &str| source.text(&json_piece(&json!({ "v": word })), 10);
    assert_eq!(text(source(None), "E").as_deref(), Some("high"));
    assert_eq!(text(source(None), "X").as_deref(), Some("X"));
    assert_eq!(text(source(Some("low")), "X").as_deref(), Some("low"));
    assert_eq!(text(source(Some("low")), "").as_deref(), Some("low"));
}

#[test]
fn groups_that_took_no_part_are_missing() {
    let regex = Regex::new("a(?P<b>b)?").unwrap();
    let piece = Content::Text {
        line: "ac",
        captures: regex.captures("ac").unwrap(),
        next: None,
        lines: "",
    };
    assert_eq!(piece.get(&Field::Group(1)), None);
    assert_eq!(piece.get(&Field::Group(0)).as_deref(), Some("a"));
    assert_eq!(piece.get(&Field::Whole).as_deref(), Some("ac"));
}

#[test]
fn xml_paths_go_down_up_and_to_attributes() {
    let leaf = |name: &str, key: &str, value: &str, text: &str| Element {
        name: name.to_owned(),
        attributes: vec![(key.to_owned(), value.to_owned())],
        text: text.to_owned(),
        children: Vec::new(),
    };
    let host = Element {
        children: vec![leaf("address", "addr", "::1", "")],
        ..leaf("host", "n", "1", "")
    };
    let ports = leaf("ports", "n", "2", "");
    let port = Element {
        children: vec![
            leaf("x:state", "other", "o", "first"),
            leaf("state", "state", "open", "second"),
        ],
        ..leaf("port", "portid", "80", "text")
    };
    let ancestors = [host, ports];
    let piece = Content::Xml {
        ancestors: &ancestors,
        element: &port,
    };
    for (path, expected) in [
        ("@portid", Some("80")),
        ("state/@state", Some("open")),
        ("state", Some("first")),
        ("x:state/@other", Some("o")),
        ("../@n", Some("2")),
        ("../../address/@addr", Some("::1")),
        ("../../../@n", None),
        ("state/@gone", None),
        ("gone/@state", None),
    ] {
        let field = Field::Path(XmlPath::parse(path).unwrap());
        assert_eq!(piece.get(&field).as_deref(), expected, "{path}");
    }
    for bad in ["", "/a", "a//b", "@", "@a/b", "a/..", "a b", "a[1]", "a/@b@c"] {
        assert_eq!(XmlPath::parse(bad), None, "{bad}");
    }
}

#[test]
fn groups_are_numbered_as_the_matcher_does() {
    for text in [
        "a",
        "(a)(?P<x>b(?P<y>c)|(d))+(?:e)(f)?",
        "(?x) (?<n> a ) # c\n",
        "(()|((?P<z>)))*",
    ] {
        let regex = Regex::new(text).unwrap();
        let pattern = Pattern::new(text).unwrap();
        assert_eq!(
            pattern.group_names().collect::<Vec<_>>(),
            regex.capture_names().collect::<Vec<_>>(),
            "{text}"
        );
    }
}

#[test]
fn the_heaviest_pattern_that_is_built_late_can_be_built() {
    for (text, letters) in [("\\w".repeat(200), 200), ("(?:\\w{20}){20}".to_owned(), 400)] {
        let pattern = Pattern::new(&text).unwrap();
        assert!(!pattern.is_built(), "{text}");
        assert!(pattern.captures(&"ä".repeat(letters)).is_some(), "{text}");
    }
}

#[test]
fn a_pattern_that_cannot_be_built_is_refused_when_it_is_checked() {
    assert!(Pattern::new("(?:\\w{1000}){1000}").is_err());
}
