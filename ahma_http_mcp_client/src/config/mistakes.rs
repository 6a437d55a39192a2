//! Mistakes that leave a file readable: duplicate keys and misspelt ones.

use jsonc_parser::ast::Value;

/// Calls `found` with the path of every key that an object has more than once.
pub(super) fn duplicate_keys(value: &Value<'_>, path: &mut Vec<String>, found: &mut impl FnMut(&[String])) {
    match value {
        Value::Object(object) => {
            for (index, property) in object.properties.iter().enumerate() {
                let name = property.name.as_str();
                path.push(name.to_owned());
                if object.properties[..index]
                    .iter()
                    .any(|earlier| earlier.name.as_str() == name)
                {
                    found(path);
                }
                duplicate_keys(&property.value, path, found);
                path.pop();
            }
        }
        Value::Array(array) => {
            for element in &array.elements {
                duplicate_keys(element, path, found);
            }
        }
        _ => {}
    }
}

/// The field that was probably meant. Fields of other clients resemble none of ours, so only a slip of one letter counts.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let letters = |name: &str| {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|c| c.to_ascii_lowercase()).collect::<String>()
    };
    let name = letters(name);
    let mut known = known.iter().copied();
    known.find(|known| ahma_common::is_slip(&name, &letters(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_nearly_right_is_guessed() {
        let known = ["url", "headers", "command", "env", "client_id"];
        for (name, expected) in [
            ("header", Some("headers")),
            ("URL", Some("url")),
            ("clientId", Some("client_id")),
            ("comand", Some("command")),
            ("commmand", Some("command")),
            ("ulr", Some("url")),
            ("hedaers", Some("headers")),
            ("dev", None),
            ("nve", None),
            ("haeders", Some("headers")),
            ("haedres", None),
            ("envFile", None),
            ("gallery", None),
        ] {
            assert_eq!(nearest(name, &known), expected, "{name}");
        }
    }
}
