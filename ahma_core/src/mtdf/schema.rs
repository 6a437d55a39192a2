//! The JSON Schema of tool files, made from the types in `file`.

use std::sync::LazyLock;

use schemars::{Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;

use super::file::ToolFile;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(without_null_default));
    settings
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

/// A default of `null` only repeats that the field may be left out.
fn without_null_default(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}
