//! What clients are told about tools.

use serde_json::{Value, json};

use super::{Catalog, CatalogSettings};
use crate::mtdf::{Probe, Source, ToolDef, check_set};

fn tools(files: &[Value]) -> Vec<ToolDef> {
    let sources: Vec<Source> = files
        .iter()
        .enumerate()
        .map(|(index, file)| Source {
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
fn asynchronous_tools_tell_the_model_not_to_wait() {
    let files = tools(&[nested()]);
    let catalog = Catalog::build(&files, CatalogSettings::default());
    let description = &catalog.get("vc").unwrap().description;
    assert!(
        description.starts_with("The tool itself. Runs in the background"),
        "{description}"
    );
    assert!(description.contains("`await`"), "{description}");
    assert_eq!(catalog.get("vc_remote_add").unwrap().description, "Add.");
    let forced = Catalog::build(&files, CatalogSettings { force_sync: true });
    assert_eq!(forced.get("vc").unwrap().description, "The tool itself.");
    let default = |catalog: &Catalog, tool: &str| {
        catalog.get(tool).unwrap().input_schema["properties"]["execution_mode"]["default"].clone()
    };
    assert_eq!(default(&catalog, "vc"), "asynchronous");
    assert_eq!(default(&catalog, "sandboxed_shell"), "asynchronous");
    assert_eq!(default(&catalog, "vc_remote_add"), "synchronous");
    assert_eq!(default(&forced, "vc"), "synchronous");
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
        (Some(true), None, Some(true)),
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
            Probe::Run(command) => (command.argv.as_slice(), command.success_codes.as_slice()),
            Probe::Find { .. } => panic!("the file says what to run"),
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

/// Every tool repeats them, so each byte is paid for a hundred times.
#[test]
fn what_all_tools_share_takes_little_of_the_list() {
    let catalog = catalog(&[]);
    let properties = &catalog.get("sandboxed_shell").unwrap().input_schema["properties"];
    let shared: usize = ["execution_mode", "timeout_seconds", "working_directory"]
        .iter()
        .map(|name| name.len() + properties[name].to_string().len())
        .sum();
    assert!(shared < 300, "{shared} bytes");
}
