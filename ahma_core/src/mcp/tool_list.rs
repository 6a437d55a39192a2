//! The list of tools that clients are shown: some built in, some of the catalog, some of remote servers.
//!
//! It is the same after every start with the same tool files and programs, and changes only by a reload or when a missing
//! program was installed and its tool called: clients keep it at the head of what they send to their model.

use std::collections::BTreeSet;

use ahma_common::ToolPatterns;
use rmcp::model::Tool;

use super::{builtin, convert};
use crate::{
    catalog::{self, Expose},
    toolbox::Toolbox,
};

/// The built-in tools, then all others by name, as far as the client may call them. `remote` are the tools of remote servers.
pub(super) fn tools(toolbox: &Toolbox, mut remote: Vec<Tool>, limit: &ToolPatterns) -> Vec<Tool> {
    remote.retain(|tool| limit.allow(&tool.name));
    let present = &toolbox.present;
    let (remote, hidden_remote) = match present.expose() {
        Expose::Core | Expose::All => (remote, Vec::new()),
        Expose::Search => (Vec::new(), remote),
    };
    let hidden = present
        .hidden()
        .map(|tool| tool.name.as_str())
        .filter(|name| limit.allow(name));
    let families: BTreeSet<&str> = hidden
        .chain(hidden_remote.iter().map(|tool| tool.name.as_ref()))
        .map(family)
        .collect();
    let mut tools = builtin::tools(&families, present.expose());
    let listed = present.listed().filter(|tool| limit.allow(&tool.name));
    tools.extend(listed.map(|tool| convert::tool(tool)));
    tools.extend(remote);
    tools
}

/// Definition of a tool in the list, and the bytes it takes there.
#[derive(Debug)]
pub(crate) struct ToolCost {
    pub(crate) name: String,
    pub(crate) bytes: usize,
}

impl ToolCost {
    /// About as many as tokenizers take for one token of JSON.
    pub(crate) const BYTES_PER_TOKEN: usize = 4;
}

/// Cost of every tool that a client is shown, in the order of the list. Those of remote servers are not known here.
pub(crate) fn costs(toolbox: &Toolbox) -> Vec<ToolCost> {
    tools(toolbox, Vec::new(), &ToolPatterns::any())
        .into_iter()
        .map(cost)
        .collect()
}

/// Cost of a tool of the catalog, were it listed.
pub(crate) fn cost_of(tool: &catalog::Tool) -> ToolCost {
    cost(convert::tool(tool))
}

fn cost(tool: Tool) -> ToolCost {
    ToolCost {
        bytes: serde_json::to_string(&tool).map_or(0, |text| text.len()),
        name: tool.name.into_owned(),
    }
}

/// The first word of a tool's name, usually that of its program.
fn family(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}
