//! Errors as one line of text.

use std::error::Error;

/// The error and its causes on one line.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some foreign errors print their source themselves.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    #[test]
    fn causes_follow_once_each() {
        for (layers, expected) in [
            (&["cannot start"][..], "cannot start"),
            (&["cannot start", "no file"], "cannot start: no file"),
            (&["a", "b", "c"], "a: b: c"),
            (&["cannot start: no file", "no file"], "cannot start: no file"),
        ] {
            let innermost_first = layers.iter().rev();
            let error = innermost_first.fold(None, |source, text| Some(Box::new(Layer { text, source })));
            assert_eq!(error_chain(&*error.unwrap()), expected);
        }
    }
}
