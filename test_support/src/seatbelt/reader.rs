//! The words of a profile. Each line must hold one whole statement: longer ones have made `sandbox-exec` abort.

/// One word of a profile, or several in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    Symbol(String),
    Text(String),
    List(Vec<Word>),
}

/// The statements of a profile, one for each line.
pub(super) fn statements(profile: &str) -> Result<Vec<Vec<Word>>, String> {
    let lines = profile.lines().enumerate();
    lines
        .map(|(index, line)| match words(line) {
            Some(words) => match <[Word; 1]>::try_from(words) {
                Ok([Word::List(statement)]) => Ok(statement),
                _ => Err(format!("line {}: not one statement: {line}", index + 1)),
            },
            None => Err(format!(
                "line {}: a statement must end on its line: {line}",
                index + 1
            )),
        })
        .collect()
}

/// `None` if a bracket or a string is open at the end, or closed too early.
fn words(line: &str) -> Option<Vec<Word>> {
    let mut characters = line.chars().peekable();
    let mut open = vec![Vec::new()];
    while let Some(character) = characters.next() {
        let word = match character {
            ' ' => continue,
            '(' => {
                open.push(Vec::new());
                continue;
            }
            ')' => Word::List(open.pop()?),
            '"' => Word::Text(text(&mut characters)?),
            first => {
                let mut symbol = String::from(first);
                while let Some(next) = characters.next_if(|next| !" ()\"".contains(*next)) {
                    symbol.push(next);
                }
                Word::Symbol(symbol)
            }
        };
        open.last_mut()?.push(word);
    }
    <[Vec<Word>; 1]>::try_from(open).ok().map(|[words]| words)
}

/// The rest of a string, whose opening quote was read.
fn text(characters: &mut impl Iterator<Item = char>) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        match characters.next()? {
            '"' => return String::from_utf8(bytes).ok(),
            '\\' => match characters.next()? {
                'x' => {
                    let digits: String = [characters.next()?, characters.next()?].iter().collect();
                    bytes.push(u8::from_str_radix(&digits, 16).ok()?);
                }
                escaped @ ('"' | '\\') => bytes.push(u8::try_from(escaped).ok()?),
                _ => return None,
            },
            plain => bytes.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
