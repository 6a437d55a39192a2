//! The descriptions of tools that clients get.

use serde_json::{Value, json};

use super::{Catalog, CatalogSettings, Expose};
use crate::mtdf::{AvailabilityCheck, META_PARAMETERS, ToolDef, ToolSource, check_set};

fn tools(files: &[Value]) -> Vec<ToolDef> {
    let sources: Vec<ToolSource> = files
        .iter()
        .enumerate()
        .map(|(index, file)| ToolSource {
            name: format!("{index}.json"),
            text: file.to_string(),
        })
        .collect();
    let report = check_set(&sources);
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
    report.tools
}

fn catalog(files: &[Value]) -> Catalog {
    Catalog::build(&tools(files), CatalogSettings::default())
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.tools().map(|tool| tool.name.as_str()).collect()
}

fn nested() -> Value {
    json!({
        "description": "Version control.", "command": "/usr/bin/vc",
        "availability_check": "vc --version", "install_instructions": "install vc",
        "annotations": { "destructive": true, "openWorld": true },
        "subcommand": [
            { "name": "default", "description": "The tool itself." },
            { "name": "hidden", "description": "Off.", "enabled": false },
            {
                "name": "remote", "description": "A group.", "synchronous": true,
                "availability_check": { "args": ["--help"], "success_exit_codes": [0, 129] },
                "subcommand": [
                    { "name": "default", "description": "List", "annotations": { "readOnly": true } },
                    { "name": "add", "description": "Add.", "install_instructions": "install vc-remote" },
                ],
            },
        ],
    })
}

#[test]
fn leaves_of_any_depth_are_listed_by_name_in_a_stable_order() {
    let catalog = catalog(&[json!({ "description": "Z.", "command": "alpha" }), nested()]);
    assert_eq!(
        names(&catalog),
        ["alpha", "sandboxed_shell", "vc", "vc_remote", "vc_remote_add"]
    );
}

#[test]
fn a_disabled_tool_is_left_out_with_all_its_subcommands() {
    let mut tool = nested();
    tool["enabled"] = json!(false);
    assert_eq!(names(&catalog(&[tool])), ["sandboxed_shell"]);
}

#[test]
fn a_level_is_inherited_and_decides_what_is_listed() {
    let mut tool = nested();
    tool["subcommand"][2]["level"] = json!("extended");
    tool["subcommand"][2]["subcommand"][1]["level"] = json!("core");
    let files = tools(&[tool]);
    for (expose, listed) in [
        (Expose::Core, vec!["sandboxed_shell", "vc", "vc_remote_add"]),
        (
            Expose::All,
            vec!["sandboxed_shell", "vc", "vc_remote", "vc_remote_add"],
        ),
        (Expose::Search, vec!["sandboxed_shell"]),
    ] {
        let settings = CatalogSettings {
            expose,
            ..CatalogSettings::default()
        };
        let catalog = Catalog::build(&files, settings);
        let shown: Vec<&str> = catalog.listed().map(|tool| tool.name.as_str()).collect();
        assert_eq!(shown, listed, "{expose:?}");
        assert_eq!(shown.len() + catalog.hidden().count(), catalog.len());
    }
}

#[test]
fn what_a_level_does_not_say_comes_from_above() {
    let catalog = catalog(&[nested()]);
    let list = catalog.get("vc_remote").unwrap();
    let flags = (
        list.annotations.read_only,
        list.annotations.destructive,
        list.annotations.open_world,
    );
    assert_eq!(
        flags,
        (Some(true), Some(false), Some(true)),
        "read-only settles the inherited opposite"
    );
    assert_eq!(list.install_instructions.as_deref(), Some("install vc"));
    let add = catalog.get("vc_remote_add").unwrap();
    assert_eq!(add.annotations.destructive, Some(true));
    assert_eq!(add.install_instructions.as_deref(), Some("install vc-remote"));
    let probes: Vec<(&[String], &[i32])> = add
        .probes
        .iter()
        .map(|probe| match &**probe {
            AvailabilityCheck::Run(command) => (command.argv.as_slice(), command.success_codes.as_slice()),
            AvailabilityCheck::Find { .. } => panic!("the file says what to run"),
        })
        .collect();
    let own = ["vc".to_owned(), "--version".into()];
    let group = ["/usr/bin/vc".to_owned(), "remote".into(), "--help".into()];
    assert_eq!(
        probes,
        [
            (own.as_slice(), [0].as_slice()),
            (group.as_slice(), [0, 129].as_slice())
        ]
    );
}

#[test]
fn a_sequence_needs_what_its_steps_need() {
    let sequence = json!({
        "name": "both", "description": "B.", "command": "sequence",
        "sequence": [{ "tool": "vc", "subcommand": "remote_add" }, { "tool": "vc" }, { "tool": "sandboxed_shell", "args": { "command": "ls" } }],
    });
    let catalog = catalog(&[nested(), sequence]);
    assert_eq!(
        catalog.get("both").unwrap().probes,
        catalog.get("vc_remote_add").unwrap().probes
    );
}

#[test]
fn the_input_schema_says_what_a_call_may_contain() {
    let tool = json!({
        "name": "demo", "description": "A demo.", "command": "demo",
        "options": [
            { "name": "level", "type": "string", "enum": ["low", "high"], "default": "low", "description": "How much." },
            { "name": "count", "type": "integer", "minimum": 1, "maximum": 9, "required": true },
            { "name": "ratio", "type": "number", "enum": [0.5, 1] },
            { "name": "quiet", "type": "boolean" },
        ],
        "positional_args": [
            { "name": "files", "type": "array", "items": { "type": "string", "format": "path" }, "required": true }
        ],
    });
    insta::assert_json_snapshot!(*catalog(&[tool]).get("demo").unwrap().input_schema);
}

#[test]
fn the_shell_is_always_there() {
    let catalog = catalog(&[]);
    let shell = catalog.get("sandboxed_shell").unwrap();
    assert_eq!(shell.input_schema["required"], json!(["command"]));
    assert_eq!(
        (shell.file.as_ref(), shell.annotations.destructive),
        (None, Some(true))
    );
}

#[test]
fn near_names_are_found_among_all_tools() {
    let catalog = catalog(&[nested()]);
    assert_eq!(catalog.nearest("vc_remote_ad").first(), Some(&"vc_remote_add"));
    assert_eq!(catalog.nearest("awiat"), ["await"]);
    assert!(catalog.nearest("completely-different").is_empty());
}

#[test]
fn a_tool_file_that_says_nothing_gets_all_hints() {
    let catalog = catalog(&[json!({ "description": "D.", "command": "demo" })]);
    let hints = &catalog.get("demo").unwrap().annotations;
    let hints = [
        hints.read_only,
        hints.destructive,
        hints.idempotent,
        hints.open_world,
    ];
    assert_eq!(hints, [Some(false), Some(true), Some(false), Some(true)]);
}

/// Every tool repeats them, so each byte is paid for many times.
#[test]
fn what_all_tools_share_takes_little_of_the_list() {
    let catalog = catalog(&[]);
    let mut schema = serde_json::Map::clone(&catalog.get("sandboxed_shell").unwrap().input_schema);
    let properties = schema["properties"].as_object_mut().unwrap();
    properties.retain(|name, _| META_PARAMETERS.contains(&name.as_str()));
    let braces = 2;
    let shared = schema["properties"].to_string().len() - braces;
    assert!(shared <= 110, "{shared} bytes");
}
