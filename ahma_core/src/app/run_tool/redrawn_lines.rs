//! Lines that a program redraws: only their last state is passed on.
//!
//! Stream rules read the progress bar of a program, so their tool file makes it draw one even without a terminal. Passed on
//! unchanged, the bar would garble a terminal of another width, and leave every state in a file.

/// Longer lines are passed on unfinished.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Holds the line that is not finished.
#[derive(Debug, Default)]
pub(super) struct RedrawnLines {
    line: Vec<u8>,
    /// The last byte was a carriage return: either the line ends, or it is drawn again.
    returned: bool,
}

impl RedrawnLines {
    /// Returns the part that is final after these bytes.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut passed = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            match (byte, std::mem::take(&mut self.returned)) {
                (b'\n', returned) => {
                    passed.append(&mut self.line);
                    passed.extend_from_slice(if returned { b"\r\n" } else { b"\n" });
                }
                (b'\r', _) => self.returned = true,
                (byte, returned) => {
                    if returned {
                        self.line.clear();
                    }
                    self.line.push(byte);
                }
            }
            if self.line.len() >= MAX_LINE_BYTES {
                passed.append(&mut self.line);
            }
        }
        passed
    }

    /// Returns the unfinished line at the end.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.returned = false;
        std::mem::take(&mut self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_line_that_is_redrawn_the_last_state_is_left_however_it_was_cut() {
        for (text, expected) in [
            ("plain\ntwo\n", "plain\ntwo\n"),
            ("dos\r\nlines\r\n", "dos\r\nlines\r\n"),
            ("1/3  \r2/3  \rdone\nnext\n", "done\nnext\n"),
            ("1/3\r\r\nnext\n", "1/3\r\nnext\n"),
            ("first\n1/3\r2/3\r", "first\n2/3"),
            ("no end", "no end"),
            ("", ""),
        ] {
            for size in 1..=text.len().max(1) {
                let mut states = RedrawnLines::default();
                let mut passed: Vec<u8> = text
                    .as_bytes()
                    .chunks(size)
                    .flat_map(|chunk| states.pass(chunk))
                    .collect();
                passed.extend(states.rest());
                assert_eq!(String::from_utf8_lossy(&passed), expected, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept_for_ever() {
        let mut states = RedrawnLines::default();
        let passed = states.pass(&vec![b'x'; 3 * MAX_LINE_BYTES]);
        assert_eq!(passed.len() + states.rest().len(), 3 * MAX_LINE_BYTES);
        assert!(passed.len() >= 2 * MAX_LINE_BYTES);
    }
}
