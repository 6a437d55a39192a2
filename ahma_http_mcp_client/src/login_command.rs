//! The command that logs in, ready to be copied.

/// `ahma_mcp login SERVER` with the flags that lead it to the same server and the same token file.
#[derive(Debug, Clone)]
pub struct LoginCommand {
    /// The program and its own flags.
    program: Vec<String>,
    /// Flags after the server.
    flags: Vec<String>,
}

impl Default for LoginCommand {
    fn default() -> Self {
        Self {
            program: vec!["ahma_mcp".to_owned()],
            flags: Vec::new(),
        }
    }
}

impl LoginCommand {
    /// A flag of the program itself.
    #[must_use]
    pub fn after(mut self, flag: &str, value: &str) -> Self {
        self.program.extend([flag.to_owned(), value.to_owned()]);
        self
    }

    /// A flag of the subcommand.
    #[must_use]
    pub fn with(mut self, flag: &str, value: &str) -> Self {
        self.flags.extend([flag.to_owned(), value.to_owned()]);
        self
    }

    pub fn to(&self, server: &str) -> String {
        let words = self.program.iter().map(String::as_str);
        let words = words.chain(["login", server]);
        let words = words.chain(self.flags.iter().map(String::as_str));
        words.map(quoted).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn advice(&self, server: &str) -> String {
        format!("run `{}`", self.to(server))
    }
}

/// One word of a POSIX shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_typed_as_it_is_shown() {
        let plain = LoginCommand::default();
        assert_eq!(plain.to("jira"), "ahma_mcp login jira");
        assert_eq!(
            plain.to("https://x.example/mcp"),
            "ahma_mcp login https://x.example/mcp"
        );
        assert_eq!(
            plain.to("https://x.example/?a=1&b=2"),
            "ahma_mcp login 'https://x.example/?a=1&b=2'"
        );
        let full = plain
            .after("--sandbox-scope", "/my project")
            .with("--mcp-config", "/it's.json");
        assert_eq!(
            full.to("My Server"),
            r"ahma_mcp --sandbox-scope '/my project' login 'My Server' --mcp-config '/it'\''s.json'"
        );
    }
}
