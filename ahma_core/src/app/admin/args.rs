//! Flags of `ahma_mcp admin`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// The server, and the output format.
#[derive(Debug, Clone, Parser)]
pub(crate) struct AdminOptions {
    /// Address of the server.
    #[arg(
        long,
        env = "AHMA_ADMIN_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:3000"
    )]
    pub(crate) admin_url: String,

    /// File that holds the token of an operator.
    #[arg(long, env = "AHMA_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// The token itself. A flag shows in the list of processes, so use the variable.
    #[arg(long, env = "AHMA_ADMIN_TOKEN", hide = true, hide_env_values = true)]
    pub(crate) admin_token: Option<ahma_http_bridge::Secret>,

    /// A table for people, or JSON.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = AdminFormat::Text)]
    pub(crate) format: AdminFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdminFormat {
    Text,
    Json,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum AdminCommand {
    /// List open sessions: who, from where, since when
    Sessions {
        #[command(flatten)]
        options: AdminOptions,
    },
    /// List operations: what runs, for whom, how far
    Operations {
        /// Only those with this status, such as running.
        #[arg(long)]
        status: Option<String>,

        /// Only those of this token or OAuth subject.
        #[arg(long, value_name = "NAME")]
        principal: Option<String>,

        #[command(flatten)]
        options: AdminOptions,
    },
    /// Search what ran: everything that is written down, whatever server process ran it
    History(AdminHistoryArgs),
    /// Show everything known of one operation but its output
    Show {
        operation: String,

        #[command(flatten)]
        options: AdminOptions,
    },
    /// List what an operation found, the worst first
    Findings {
        operation: String,

        #[command(flatten)]
        options: AdminOptions,
    },
    /// Print one operation in a format for other programs
    Export {
        operation: String,

        #[arg(value_parser = ["sarif", "junit", "json", "text"])]
        form: String,

        #[command(flatten)]
        options: AdminOptions,
    },
    /// List the server processes that live, with their tools; --format json has the mistakes in tool files and the sandbox
    Servers {
        #[command(flatten)]
        options: AdminOptions,
    },
    /// Print the newest lines of the audit trail, and whether it is intact
    Audit {
        /// Number of lines.
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        lines: u64,

        #[command(flatten)]
        options: AdminOptions,
    },
    /// Follow the output of an operation
    Tail {
        operation: String,

        #[command(flatten)]
        options: AdminOptions,
    },
    /// Cancel an operation. Its agent is told who did it, and why
    Cancel {
        operation: String,

        /// For the agent and the audit trail.
        #[arg(long)]
        reason: Option<String>,

        #[command(flatten)]
        options: AdminOptions,
    },
    /// End a session and stop what it runs
    End {
        session: String,

        /// For the client and the audit trail.
        #[arg(long)]
        reason: Option<String>,

        #[command(flatten)]
        options: AdminOptions,
    },
    /// Take no new work, let what runs finish for --drain of the server, then end it
    Drain {
        #[command(flatten)]
        options: AdminOptions,
    },
}

/// Filter of operations; the server parses the values.
#[derive(Debug, Parser)]
pub(crate) struct AdminHistoryArgs {
    /// Only operations with this text in tool, command, arguments or reason.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,

    /// Only operations of this tool.
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Only operations of this client: the name of a token, an OAuth subject, or what the program calls itself.
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,

    /// Only operations with this status, such as failed.
    #[arg(long)]
    pub(crate) status: Option<String>,

    /// Only operations with a finding of this severity or a worse one.
    #[arg(long)]
    pub(crate) severity: Option<String>,

    /// Only operations that were started in this time, such as 2h or 7d.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,

    /// Number of operations shown.
    #[arg(long, value_name = "COUNT", default_value = "50")]
    pub(crate) limit: String,

    #[command(flatten)]
    pub(crate) options: AdminOptions,
}

impl AdminHistoryArgs {
    /// The query parameters of the admin API.
    pub(crate) fn query(self) -> Vec<(&'static str, String)> {
        let given = [
            ("text", self.text),
            ("tool", self.tool),
            ("client", self.client),
            ("status", self.status),
            ("severity", self.severity),
            ("since", self.since),
            ("limit", Some(self.limit)),
        ];
        let given = given.into_iter();
        given.filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl AdminCommand {
    pub(crate) fn options(&self) -> &AdminOptions {
        match self {
            Self::Sessions { options }
            | Self::Operations { options, .. }
            | Self::History(AdminHistoryArgs { options, .. })
            | Self::Show { options, .. }
            | Self::Findings { options, .. }
            | Self::Export { options, .. }
            | Self::Servers { options }
            | Self::Audit { options, .. }
            | Self::Tail { options, .. }
            | Self::Cancel { options, .. }
            | Self::End { options, .. }
            | Self::Drain { options } => options,
        }
    }
}
