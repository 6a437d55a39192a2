//! The JSON Schema of tool files, made from the types in `file`.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::file::ToolFile;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<ToolFile>()
        .to_value()
});

/// The schema as a JSON value.
pub fn schema() -> &'static Value {
    &SCHEMA
}

/// The schema as the text that is committed at `schemas/mtdf.schema.json`.
pub fn schema_text() -> String {
    // The alternate form of a JSON value is its indented form and cannot fail.
    format!("{:#}\n", *SCHEMA)
}
