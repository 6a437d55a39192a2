//! Which logins the user has not been told of yet.

use std::collections::BTreeMap;

use super::state::{ServerState, Snapshot};

/// Remembers what was told, so that each wish for a login is told once.
#[derive(Debug, Default)]
pub struct LoginNews {
    told: BTreeMap<String, String>,
}

impl LoginNews {
    /// What is new in `states`, one line for each server: who wants a login, and where.
    pub fn of(&mut self, states: &Snapshot) -> Vec<String> {
        let mut news = Vec::new();
        for (server, state) in states {
            let (link, reason) = match state {
                ServerState::LoginRequired { link, reason } => (link, reason),
                ServerState::Ready { .. } => {
                    self.told.remove(server);
                    continue;
                }
                // A server that is only tried again has not got what it wants.
                ServerState::Connecting { .. } | ServerState::Failed { .. } => continue,
            };
            let what = match link {
                Some(link) => format!("open {link}"),
                None => reason.clone(),
            };
            if self.told.get(server) != Some(&what) {
                news.push(format!("remote server `{server}` wants a login: {what}"));
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
    fn each_wish_is_told_once_and_again_after_it_was_fulfilled() {
        let wants = |link: Option<&str>| ServerState::LoginRequired {
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
        let plain = ["remote server `jira` wants a login: run `ahma_mcp login jira`"];
        assert_eq!(of(&wants(None)), plain);
        assert_eq!(of(&connecting), [""; 0]);
        assert_eq!(of(&wants(None)), [""; 0]);
        let link = wants(Some("https://x.example/login"));
        assert_eq!(
            of(&link),
            ["remote server `jira` wants a login: open https://x.example/login"]
        );
        assert_eq!(of(&ready), [""; 0]);
        assert_eq!(of(&wants(None)), plain);
    }
}
