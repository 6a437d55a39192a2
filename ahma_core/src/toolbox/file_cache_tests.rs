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

fn names(loaded: &LoadedTools) -> Vec<&str> {
    let mut names: Vec<_> = loaded
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
    let mut cache = FileCache::default();
    let loaded = cache.refresh(vec![
        file("a.json", &tool("alpha")),
        file("b.json", &tool("beta")),
    ]);
    assert_eq!((names(&loaded), loaded.stale.len()), (vec!["alpha", "beta"], 0));

    let loaded = cache.refresh(vec![file("a.json", "{"), file("b.json", &tool("gamma"))]);
    assert_eq!(names(&loaded), ["alpha", "gamma"]);
    assert_eq!(loaded.stale, ["a.json"]);
    assert_eq!(loaded.problems.len(), 1, "{:?}", loaded.problems);

    let loaded = cache.refresh(vec![file("a.json", &tool("delta"))]);
    assert_eq!((names(&loaded), loaded.stale.len()), (vec!["delta"], 0));
}

#[test]
fn a_file_that_never_was_good_is_left_out_alone() {
    let mut cache = FileCache::default();
    let loaded = cache.refresh(vec![file("a.json", "[]"), file("b.json", &tool("beta"))]);
    assert_eq!(names(&loaded), ["beta"]);
    assert!(loaded.stale.is_empty());
    let unreadable = SourceFile {
        name: "c.json".to_owned(),
        text: Err("the file cannot be read".to_owned()),
    };
    let loaded = cache.refresh(vec![file("b.json", &tool("beta")), unreadable]);
    assert_eq!(names(&loaded), ["beta"]);
    assert_eq!(loaded.problems[0].file, "c.json");
}

#[test]
fn an_edit_that_takes_anothers_name_is_the_one_that_is_undone() {
    let mut cache = FileCache::default();
    cache.refresh(vec![
        file("a.json", &tool("alpha")),
        file("b.json", &tool("beta")),
    ]);
    let loaded = cache.refresh(vec![
        file("a.json", &tool("alpha")),
        file("b.json", &tool("alpha")),
    ]);
    assert_eq!(names(&loaded), ["alpha", "beta"]);
    assert_eq!(loaded.stale, ["b.json"]);
    assert!(
        loaded
            .problems
            .iter()
            .any(|problem| problem.message.contains("also defined")),
        "{:?}",
        loaded.problems
    );
}

#[test]
fn a_deleted_file_is_forgotten() {
    let mut cache = FileCache::default();
    cache.refresh(vec![file("a.json", &tool("alpha"))]);
    assert!(cache.refresh(Vec::new()).tools.is_empty());
    assert!(cache.refresh(vec![file("a.json", "{")]).tools.is_empty());
}
