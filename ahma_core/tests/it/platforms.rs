//! Code for one system alone stands where `ARCHITECTURE.md` says, and nowhere else.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use test_support::sources;

#[test]
fn code_for_one_system_stands_where_the_map_says() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let map = fs::read_to_string(workspace.join("ARCHITECTURE.md")).unwrap();
    let listed = listed(&map);
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(workspace).unwrap() {
        let directory = entry.unwrap().path().join("src");
        if directory.is_dir() {
            let places = sources(&directory).into_iter();
            let places = places.filter(|(_, text)| is_for_one_system(text));
            found.extend(places.map(|(path, _)| path.strip_prefix(workspace).unwrap().to_owned()));
        }
    }
    assert_eq!(differences(&listed, &found), Vec::<String>::new());
}

#[test]
fn code_outside_the_list_and_a_place_without_any_are_noticed() {
    let map = "`Wall` (`jail/wall.rs`).\n`#[cfg(target_os = …)]` stands only in `jail/wall.rs`, `sandbox/held/` (one or the other), `ahma_common/src/lib.rs` and `jail/old.rs`; elsewhere only as `cfg!`, `x/y.rs`.";
    let listed = listed(map);
    let found = [
        "ahma_core/src/jail/wall.rs",
        "ahma_core/src/sandbox/held/mod.rs",
        "ahma_core/src/mcp/call.rs",
        "ahma_common/src/lib.rs",
    ];
    let found = found.map(PathBuf::from).into();
    assert_eq!(
        differences(&listed, &found),
        [
            "ahma_core/src/mcp/call.rs is not listed",
            "ahma_core/src/jail/old.rs is listed without need",
        ]
    );
    for (text, expected) in [
        ("#[cfg(target_os = \"linux\")]\nfn f() {}", true),
        ("#![cfg(not(target_os = \"macos\"))]", true),
        (
            "    #[cfg_attr(\n        not(target_os = \"linux\"),\n        expect(dead_code)\n    )]",
            true,
        ),
        ("if cfg!(target_os = \"linux\") {", false),
        ("// #[cfg(target_os = \"linux\")]", false),
        ("#[cfg(feature = \"bridge\")]\nlet system = \"target_os\";", false),
    ] {
        assert_eq!(is_for_one_system(text), expected, "{text}");
    }
}

fn listed(map: &str) -> Vec<PathBuf> {
    let (_, sentence) = map.split_once("`#[cfg(target_os = …)]` stands only in ").unwrap();
    let (sentence, _) = sentence.split_once("; elsewhere").unwrap();
    let quoted = sentence.split('`').skip(1).step_by(2);
    quoted
        .map(|path| match path.split_once("/src/") {
            Some(_) => PathBuf::from(path),
            None => Path::new("ahma_core/src").join(path),
        })
        .collect()
}

fn differences(listed: &[PathBuf], found: &BTreeSet<PathBuf>) -> Vec<String> {
    let unlisted = found
        .iter()
        .filter(|file| !listed.iter().any(|place| file.starts_with(place)))
        .map(|file| format!("{} is not listed", file.display()));
    let unneeded = listed
        .iter()
        .filter(|place| !found.iter().any(|file| file.starts_with(place)))
        .map(|place| format!("{} is listed without need", place.display()));
    unlisted.chain(unneeded).collect()
}

/// True if an attribute names a system.
fn is_for_one_system(text: &str) -> bool {
    let code: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
        .collect();
    let code = code.join("\n");
    ["#[cfg", "#![cfg"]
        .iter()
        .flat_map(|start| code.split(start).skip(1))
        .filter_map(|rest| rest.split_once(")]"))
        .any(|(attribute, _)| attribute.contains("target_os"))
}
