//! The MCP server; the only module that knows rmcp.

mod wire;
