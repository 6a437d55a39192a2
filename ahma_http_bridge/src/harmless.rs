//! JSON that a terminal can show.
//!
//! JSON itself escapes the control characters below 32 only. Those from 127 on are obeyed by terminals as well.

use serde_json::Value;

/// The value on one line, without anything that a terminal would obey.
pub(crate) fn harmless_json(value: &Value) -> String {
    without_controls(value.to_string())
}

/// The same on several lines.
pub(crate) fn harmless_pretty_json(value: &Value) -> String {
    without_controls(format!("{value:#}"))
}

/// Such characters stand only inside of strings, where an escape means the same.
fn without_controls(json: String) -> String {
    let is_obeyed = |c: &char| ('\u{7f}'..='\u{9f}').contains(c);
    if !json.chars().any(|c| is_obeyed(&c)) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_obeyed(&c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn control_characters_are_escaped_and_mean_the_same() {
        let value = json!({ "k\u{9b}": "\u{1b}[31m \u{7f}\u{80}\u{9f}\u{a0}ü\n" });
        for text in [harmless_json(&value), harmless_pretty_json(&value)] {
            let controls = text.chars().filter(|c| c.is_control() && *c != '\n');
            assert_eq!(controls.count(), 0, "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
