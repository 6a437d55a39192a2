//! Output of a command on the terminal of an operator, which must obey nothing of it.

use ahma_common::words::is_hidden;

/// Takes escape sequences out of an output that comes in pieces. A sequence may begin in one piece and end in another.
#[derive(Debug, Default)]
pub(super) struct Printed {
    place: Place,
    /// After a carriage return: whatever is drawn over the line gets a line of its own.
    has_returned: bool,
}

#[derive(Debug, Clone, Copy, Default)]
enum Place {
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// Among the parameters of a colour or a movement, up to a letter.
    Control,
    /// In a text for the terminal itself, such as a title.
    Message,
}

impl Printed {
    /// The text of the next piece. What cannot be seen is marked.
    pub(super) fn text(&mut self, piece: &str) -> String {
        let mut text = String::with_capacity(piece.len());
        piece.chars().for_each(|c| self.take(c, &mut text));
        text
    }

    fn take(&mut self, c: char, text: &mut String) {
        self.place = match (self.place, c) {
            // A message that never ends would swallow all that follows.
            (_, '\n') => {
                self.has_returned = false;
                text.push(c);
                Place::Text
            }
            (_, '\u{1b}') => Place::Escape,
            (Place::Escape, '[') => Place::Control,
            // The choice of a character set goes on to the next character.
            (Place::Escape, '\u{20}'..='\u{2f}') => Place::Escape,
            (Place::Escape, ']' | 'P' | 'X' | '^' | '_') => Place::Message,
            (Place::Control, '\u{20}'..='\u{3f}') => Place::Control,
            (Place::Message, c) if c != '\u{7}' => Place::Message,
            (Place::Escape | Place::Control | Place::Message, _) => Place::Text,
            (Place::Text, '\r') => {
                self.has_returned = true;
                Place::Text
            }
            (Place::Text, '\u{7}' | '\u{8}') => Place::Text,
            (Place::Text, c) => {
                if std::mem::take(&mut self.has_returned) {
                    text.push('\n');
                }
                text.push(if is_hidden(c) && c != '\t' {
                    char::REPLACEMENT_CHARACTER
                } else {
                    c
                });
                Place::Text
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_reaches_the_terminal_wherever_it_is_cut() {
        let printed = "\u{1b}[41;97m ALERT\u{7} \u{1b}(B\u{1b}[0m\u{1b}]8;;https://x\u{7}here\u{1b}]8;;\u{1b}\\!\r\n\
                       10%\r\u{1b}[K|\u{8}99%\n\u{1b}]0;never ends\na\u{202e}b\u{9b}2J\tc";
        let expected = " ALERT here!\n10%\n|99%\n\na\u{fffd}b\u{fffd}2J\tc";
        let characters: Vec<String> = printed.chars().map(String::from).collect();
        for size in 1..=characters.len() {
            let mut state = Printed::default();
            let pieces = characters.chunks(size).map(|piece| piece.concat());
            let text: String = pieces.map(|piece| state.text(&piece)).collect();
            assert_eq!(text, expected, "by {size}");
        }
    }
}
