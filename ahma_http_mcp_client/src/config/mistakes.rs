//! Mistakes that leave a file readable: a key that is there twice, and one that is almost right.

use jsonc_parser::ast::Value;

/// Calls `found` with the path of every key that an object has more than once.
pub(super) fn doubled_keys(value: &Value<'_>, path: &mut Vec<String>, found: &mut impl FnMut(&[String])) {
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
                doubled_keys(&property.value, path, found);
                path.pop();
            }
        }
        Value::Array(array) => {
            for element in &array.elements {
                doubled_keys(element, path, found);
            }
        }
        _ => {}
    }
}

/// What a name was probably meant to be. Names of other clients' fields are like none of ours.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|c| c.to_ascii_lowercase()).collect::<String>()
    };
    let name = plain(name);
    known
        .iter()
        .copied()
        .find(|known| is_one_letter_off(name.as_bytes(), plain(known).as_bytes()))
}

/// Whether one letter at most was added, left out or exchanged, or two neighbours were swapped.
fn is_one_letter_off(left: &[u8], right: &[u8]) -> bool {
    let same_start = left.iter().zip(right).take_while(|(l, r)| l == r).count();
    let (left, right) = (&left[same_start..], &right[same_start..]);
    let same_end = left.iter().rev().zip(right.iter().rev());
    let same_end = same_end.take_while(|(l, r)| l == r).count();
    let (left, right) = (&left[..left.len() - same_end], &right[..right.len() - same_end]);
    let is_swapped = matches!((left, right), ([a, b], [c, d]) if a == d && b == c);
    left.len().max(right.len()) <= 1 || is_swapped
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
