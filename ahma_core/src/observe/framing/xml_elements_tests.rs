use std::collections::BTreeSet;

use proptest::prelude::*;

use super::ElementReader;

/// Shows what each wanted element holds: `name{attributes}(text)[children]`, and how many are above it.
fn elements_of(chunks: &[&[u8]], wanted: &[&str]) -> Vec<String> {
    fn show(element: &super::Element) -> String {
        let attributes: Vec<_> = element
            .attributes
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let children: Vec<_> = element.children.iter().map(show).collect();
        format!(
            "{}{{{}}}({})[{}]",
            element.name,
            attributes.join(","),
            element.text,
            children.join(" ")
        )
    }
    let wanted: BTreeSet<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    let mut reader = ElementReader::new(1000, wanted);
    let mut shown = Vec::new();
    for chunk in chunks {
        let mut input = *chunk;
        while let Some((ancestors, element)) = reader.next_element(&mut input) {
            shown.push(format!("{}:{}", ancestors.len(), show(element)));
        }
        assert!(input.is_empty());
    }
    shown
}

#[track_caller]
fn check(text: &str, wanted: &[&str], expected: &[&str]) {
    assert_eq!(elements_of(&[text.as_bytes()], wanted), expected);
    let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    assert_eq!(elements_of(&single, wanted), expected, "byte by byte");
}

#[test]
fn elements_come_when_they_close_while_the_document_is_open() {
    check(
        r#"<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x "y">]><r><!-- <p a="no"/> --><p a="1"><s b='2>1'/>t</p><p/>"#,
        &["p"],
        &["1:p{a=1}(t)[s{b=2>1}()[]]", "1:p{}()[]"],
    );
}

#[test]
fn references_and_cdata_become_text() {
    check(
        r#"<p a="&lt;&#45;&quot;&gt; &unknown;">a &amp; b<![CDATA[<x> ]] &amp;]]></p><p>&unknown;</p>"#,
        &["p"],
        &[
            "0:p{a=&lt;&#45;&quot;&gt; &unknown;}(a & b<x> ]] &amp;)[]",
            "0:p{}(&unknown;)[]",
        ],
    );
    check(r#"<p a="&lt;&#45;"/>"#, &["p"], &["0:p{a=<-}()[]"]);
}

#[test]
fn names_match_with_or_without_their_namespace() {
    check("<n:p/><q:p/><p/>", &["n:p"], &["0:n:p{}()[]"]);
    check("<n:p/><p/>", &["p"], &["0:n:p{}()[]", "0:p{}()[]"]);
}

#[test]
fn malformed_markup_is_left_behind() {
    check(
        "a < b <p a=1 <p a=\"<p b=\"2\"/> </nope> <> <1> << <p/>",
        &["p"],
        &["0:p{b=2}()[]", "0:p{}()[]"],
    );
    check("<r><p><q>x</p><p/></r></r>", &["p"], &["1:p{}()[]", "1:p{}()[]"]);
    check("<p a a=\"1\" b=\"2\"/>", &["p"], &["0:p{a=1,b=2}()[]"]);
    check("log line\n<p/>\nmore\n", &["p"], &["0:p{}()[]"]);
}

#[test]
fn what_stands_beside_an_element_can_be_seen_from_it() {
    let text = "<h><addr ip=\"1\"><deep/></addr><ports><p/></ports></h>";
    let mut reader = ElementReader::new(1000, ["p".to_owned()].into());
    let mut input = text.as_bytes();
    let (ancestors, _) = reader.next_element(&mut input).unwrap();
    assert_eq!(
        ancestors[0].children[0].attributes,
        [("ip".to_owned(), "1".to_owned())]
    );
    assert!(
        ancestors[0].children[0].children.is_empty(),
        "what no rule asked for is kept shallow"
    );
}

#[test]
fn depth_width_and_length_are_bounded() {
    let deep = "<d>".repeat(100_000) + "<p/>" + &"</d>".repeat(100_000) + "<p/>";
    assert_eq!(elements_of(&[deep.as_bytes()], &["p"]), ["0:p{}()[]"]);

    let many = "<r>".to_owned() + &"<c a=\"0123456789\"/>".repeat(200_000) + "</r><p/>";
    let mut reader = ElementReader::new(1000, ["r".to_owned(), "p".to_owned()].into());
    let mut input = many.as_bytes();
    let (_, root) = reader.next_element(&mut input).unwrap();
    assert!(
        (64..100_000).contains(&root.children.len()),
        "{}",
        root.children.len()
    );
    assert_eq!(reader.next_element(&mut input).unwrap().1.name, "p");
    assert!(reader.has_dropped());

    let long = format!(
        "<p a=\"{}\"/><p>{}</p><p/>",
        "x".repeat(1 << 20),
        "y".repeat(1 << 20)
    );
    let shown = elements_of(&[long.as_bytes()], &["p"]);
    assert!(shown.iter().all(|element| element.len() < 2000));
    assert!(shown.last().unwrap().ends_with("p{}()[]"));
}

#[test]
fn what_loses_its_end_is_told() {
    let long = "x".repeat(2000);
    for (text, has_dropped) in [
        ("<p a=\"1\">text</p>".to_owned(), false),
        (format!("<p a=\"{long}\"/>"), true),
        (format!("<p>{long}</p>"), true),
        (format!("<p><![CDATA[{long}]]></p>"), true),
        // Text outside of all elements is not read.
        (format!("{long}<p/>{long}<p/>"), false),
        (format!("<p><!-- {long} --></p>"), false),
    ] {
        for size in [1, text.len()] {
            let mut reader = ElementReader::new(1000, ["p".to_owned()].into());
            for mut chunk in text.as_bytes().chunks(size) {
                while reader.next_element(&mut chunk).is_some() {}
            }
            assert_eq!(reader.has_dropped(), has_dropped, "{:.20}", text);
        }
    }
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_elements(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "<p>", "</p>", "<p/>", "<r a='", "\"", "'", ">", "<", "/", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<!D[", "]",
            "text", "&amp;", "&", "ä", " ", "\n",
        ]), 0..40),
        size in 1usize..9,
    ) {
        let text = pieces.concat();
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        prop_assert_eq!(elements_of(&chunks, &["p", "r"]), elements_of(&[text.as_bytes()], &["p", "r"]));
    }
}
