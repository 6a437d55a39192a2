use super::*;

fn file(name: &str, text: &str) -> SourceFile {
    SourceFile {
        name: name.to_owned(),
        text: Ok(text.to_owned()),
    }
}

fn tool(name: &str) -> String {
    format!(r#"{{"name": "{name}", "description": "Says {name}.", "command": "echo"}}"#)
}

fn names(stock: &Stock) -> Vec<&str> {
    let mut names: Vec<_> = stock
        .tools
        .iter()
        .flat_map(|tool| &tool.leaves)
        .map(|leaf| leaf.name.as_str())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_broken_edit_keeps_the_last_good_version() {
    let mut shelf = Shelf::default();
    let stock = shelf.restock(vec![
        file("a.json", &tool("alpha")),
        file("b.json", &tool("beta")),
    ]);
    assert_eq!((names(&stock), stock.stale.len()), (vec!["alpha", "beta"], 0));

    let stock = shelf.restock(vec![file("a.json", "{"), file("b.json", &tool("gamma"))]);
    assert_eq!(names(&stock), ["alpha", "gamma"]);
    assert_eq!(stock.stale, ["a.json"]);
    assert_eq!(stock.problems.len(), 1, "{:?}", stock.problems);

    let stock = shelf.restock(vec![file("a.json", &tool("delta"))]);
    assert_eq!((names(&stock), stock.stale.len()), (vec!["delta"], 0));
}

#[test]
fn a_file_that_never_was_good_is_left_out_alone() {
    let mut shelf = Shelf::default();
    let stock = shelf.restock(vec![file("a.json", "[]"), file("b.json", &tool("beta"))]);
    assert_eq!(names(&stock), ["beta"]);
    assert!(stock.stale.is_empty());
    let unreadable = SourceFile {
        name: "c.json".to_owned(),
        text: Err("the file cannot be read".to_owned()),
    };
    let stock = shelf.restock(vec![file("b.json", &tool("beta")), unreadable]);
    assert_eq!(names(&stock), ["beta"]);
    assert_eq!(stock.problems[0].file, "c.json");
}

#[test]
fn an_edit_that_takes_anothers_name_is_the_one_that_is_undone() {
    let mut shelf = Shelf::default();
    shelf.restock(vec![
        file("a.json", &tool("alpha")),
        file("b.json", &tool("beta")),
    ]);
    let stock = shelf.restock(vec![
        file("a.json", &tool("alpha")),
        file("b.json", &tool("alpha")),
    ]);
    assert_eq!(names(&stock), ["alpha", "beta"]);
    assert_eq!(stock.stale, ["b.json"]);
    assert!(
        stock
            .problems
            .iter()
            .any(|problem| problem.message.contains("also defined")),
        "{:?}",
        stock.problems
    );
}

#[test]
fn a_deleted_file_is_forgotten() {
    let mut shelf = Shelf::default();
    shelf.restock(vec![file("a.json", &tool("alpha"))]);
    assert!(shelf.restock(Vec::new()).tools.is_empty());
    assert!(shelf.restock(vec![file("a.json", "{")]).tools.is_empty());
}
