//! Short texts without the heap, for processes that share the jail's memory.

use std::fmt::{self, Write as _};

/// A text of at most `N` bytes, cut off before the first piece that does not fit.
pub(super) struct StackText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> StackText<N> {
    pub(super) fn of(text: fmt::Arguments<'_>) -> Self {
        let mut short = Self {
            bytes: [0; N],
            length: 0,
        };
        // Fails when it is full.
        short.write_fmt(text).ok();
        short
    }

    pub(super) fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Write for StackText<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
#[path = "stack_text_tests.rs"]
mod tests;
