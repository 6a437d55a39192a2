//! Serves the remote server whose address is given on stdin and stdout: `front URL`.

use ahma_http_mcp_client::{
    ClientSettings, FrontNews,
    config::{HttpEndpoint, ServerConfig, TransportChoice},
    front,
};
use anyhow::{Context, Result};

#[tokio::main]
#[expect(clippy::print_stderr, reason = "the link is for the person at the terminal")]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).context("usage: front URL")?;
    let config = ServerConfig {
        name: url.clone(),
        transport: TransportChoice::Auto,
        http: Some(HttpEndpoint::new(url.parse()?)),
        stdio: None,
    };
    let tell = |news: FrontNews<'_>| eprintln!("{news:?}");
    front(
        tokio::io::stdin(),
        tokio::io::stdout(),
        &config,
        &ClientSettings::default(),
        tell,
    )
    .await?;
    Ok(())
}
