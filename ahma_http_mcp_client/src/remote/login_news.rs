//! The logins that the user has not been told of yet.

use std::collections::BTreeMap;

use super::state::{ServerState, Snapshot};

/// Remembers what was told, so that each required login is told once.
#[derive(Debug, Default)]
pub struct LoginNews {
    told: BTreeMap<String, String>,
}

impl LoginNews {
    /// One line for each server that requires a login the user has not been told of.
    pub fn of(&mut self, states: &Snapshot) -> Vec<String> {
        let mut news = Vec::new();
        for (server, state) in states {
            let (link, reason) = match state {
                ServerState::LoginRequired { link, reason } => (link, reason),
                ServerState::Ready { .. } => {
                    self.told.remove(server);
                    continue;
                }
                // A server that is only tried again still requires its login.
                ServerState::Connecting { .. } | ServerState::Failed { .. } => continue,
            };
            let what = match link {
                Some(link) => format!("open {link}"),
                None => reason.clone(),
            };
            if self.told.get(server) != Some(&what) {
                news.push(format!("remote server `{server}` requires a login: {what}"));
                self.told.insert(server.clone(), what);
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_required_login_is_told_once_and_again_after_it_was_made() {
        let required = |link: Option<&str>| ServerState::LoginRequired {
            link: link.map(|link| link.parse().unwrap()),
            reason: "run `ahma_mcp login jira`".to_owned(),
        };
        let connecting = ServerState::Connecting { problem: None };
        let ready = ServerState::Ready {
            report: std::sync::Arc::new(crate::session::ConnectReport {
                step: crate::session::Step::StreamableHttp,
                protocol: String::new(),
                attempts: Vec::new(),
            }),
            tools: std::sync::Arc::default(),
        };
        let mut news = LoginNews::default();
        let mut of = |state: &ServerState| news.of(&[("jira".to_owned(), state.clone())].into());
        assert_eq!(of(&connecting), [""; 0]);
        let plain = ["remote server `jira` requires a login: run `ahma_mcp login jira`"];
        assert_eq!(of(&required(None)), plain);
        assert_eq!(of(&connecting), [""; 0]);
        assert_eq!(of(&required(None)), [""; 0]);
        let link = required(Some("https://x.example/login"));
        assert_eq!(
            of(&link),
            ["remote server `jira` requires a login: open https://x.example/login"]
        );
        assert_eq!(of(&ready), [""; 0]);
        assert_eq!(of(&required(None)), plain);
    }
}
