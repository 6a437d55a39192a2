//! Flags and variables that have no effect, for warnings.
//!
//! They do not stop the program, except a credential under a wrong name, which must not lead to an open server.

use ahma_common::variables;
use clap::{ArgMatches, Command, parser::ValueSource};

use super::args::ModeArg;
#[cfg(feature = "bridge")]
use super::exit::{Exit, Failure};
use ahma_common::nearest;

/// Flags and variables without effect.
#[derive(Debug, Clone, Default)]
pub(crate) struct IgnoredInputs {
    /// Flags about HTTP where nothing is served over HTTP.
    idle_flags: Vec<String>,
    /// Variables that no flag reads.
    unknown_variables: Vec<UnknownVariable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct UnknownVariable {
    name: String,
    nearest: Option<String>,
}

/// Variables of `ahma_list_tools`, `ahma-inspector.sh` and a bridge, which may be set as well.
const OF_OTHERS: [&str; 5] = [
    "AHMA_MCP",
    "AHMA_SERVER",
    "AHMA_TOKEN_ENV",
    "AHMA_CONNECT_TIMEOUT",
    ahma_common::contract::ENV_PRINCIPAL,
];

/// Set for the children of a bridge. They have its flags, and it has printed the warnings already.
const BRIDGE_ADDRESS: &str = ahma_common::contract::BRIDGE_ADDRESS_VARIABLE;

impl IgnoredInputs {
    pub(crate) fn read(command: &Command, matches: &ArgMatches) -> Self {
        if std::env::var_os(BRIDGE_ADDRESS).is_some() {
            return Self::default();
        }
        let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let is_http = matches.get_one::<ModeArg>("mode") == Some(&ModeArg::Http);
        Self {
            idle_flags: if is_http {
                Vec::new()
            } else {
                http_flags(command, matches)
            },
            unknown_variables: unknown(set, &variables::names(command)),
        }
    }

    /// One line for each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let flags = (!self.idle_flags.is_empty()).then(|| {
            format!(
                "without --mode http these flags do nothing: {}",
                self.idle_flags.join(", ")
            )
        });
        let variables = self.unknown_variables.iter().map(|unknown| unknown.warning());
        flags.into_iter().chain(variables).collect()
    }

    /// A misspelt credential variable must not lead to an open server.
    #[cfg(feature = "bridge")]
    pub(crate) fn refuse_open_server(&self) -> Result<(), Failure> {
        let is_credential = |unknown: &&UnknownVariable| {
            let names = std::iter::once(&unknown.name).chain(&unknown.nearest);
            names
                .into_iter()
                .any(|name| name.contains("TOKEN") || name.contains("AUTH"))
        };
        match self.unknown_variables.iter().find(is_credential) {
            None => Ok(()),
            Some(unknown) => Err(Failure::new(
                Exit::Usage,
                format!(
                    "the variable {} is not known, and without authentication the server would be open to all",
                    unknown.name
                ),
            )
            .with_hint(match &unknown.nearest {
                Some(nearest) => format!("did you mean {nearest}? if not, unset it or say --auth none"),
                None => "unset it, or say --auth none".to_owned(),
            })),
        }
    }
}

impl UnknownVariable {
    fn warning(&self) -> String {
        match &self.nearest {
            Some(nearest) => format!("{} is not known; did you mean {nearest}?", self.name),
            None => format!("{} is not known", self.name),
        }
    }
}

fn http_flags(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let makes_token = matches.subcommand_name() == Some("token");
    let given = |id: &str| {
        let is_used = makes_token && id == "tokens_file";
        !is_used && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    (command.get_arguments())
        .filter(|arg| arg.get_help_heading() == Some("HTTP") && given(arg.get_id().as_str()))
        .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
        .collect()
}

fn unknown(set: impl Iterator<Item = String>, known: &[String]) -> Vec<UnknownVariable> {
    let mut unknown: Vec<UnknownVariable> = set
        .filter(|name| name.starts_with(variables::PREFIX))
        .filter(|name| !known.contains(name) && !OF_OTHERS.contains(&name.as_str()))
        .map(|name| {
            // All have the same prefix, so only the rest is compared.
            let bare = |name: &'_ str| name[variables::PREFIX.len()..].to_owned();
            let bare_known: Vec<String> = known.iter().map(|known| bare(known)).collect();
            let found = nearest(&bare(&name), bare_known.iter().map(String::as_str));
            let nearest = found.first().map(|near| format!("{}{near}", variables::PREFIX));
            UnknownVariable { name, nearest }
        })
        .collect();
    unknown.sort_by(|left, right| left.name.cmp(&right.name));
    unknown
}

#[cfg(test)]
#[path = "ignored_inputs_tests.rs"]
mod tests;
