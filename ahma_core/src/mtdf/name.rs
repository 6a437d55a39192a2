//! Rules for the names of tools, and limits of their length.

/// Clients and model providers agree on names up to this length.
pub(super) const MAX_LENGTH: usize = 64;

/// Names of arguments up to this length are accepted by every model provider.
pub(super) const MAX_ARGUMENT_LENGTH: usize = 64;

/// Reason for which `name` cannot be a name, as a whole sentence.
pub(super) fn complaint(name: &str) -> Option<String> {
    let objection = objection(name)?;
    Some(if name.is_empty() {
        format!("the name {objection}")
    } else {
        format!("the name `{name}` {objection}")
    })
}

/// Reason for which `name` cannot be a name, as the rest of a sentence.
pub(super) fn objection(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("is empty".into());
    }
    if name.len() > MAX_LENGTH {
        return Some(format!(
            "is {} characters long; {MAX_LENGTH} are allowed",
            name.len()
        ));
    }
    let allowed = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let bad = name.chars().find(|letter| !allowed(letter))?;
    Some(format!(
        "contains {bad:?}; letters, digits, `_` and `-` are allowed"
    ))
}
