//! Checks of the cluster that the flags name.

use ahma_cluster::{Heard, Link, LinkError, StreamReport, inspect, roll_call};

use super::check::Check;
use crate::app::{
    ClusterChoice,
    cluster::{ROLL_CALL, read_signer},
};

const AREA: &str = "cluster";

/// A signed request is valid for an hour, so this tolerance is for people who compare the times of logs.
const CLOCK_TOLERANCE_MS: u64 = 5_000;

pub(super) async fn checks(choice: &ClusterChoice) -> Vec<Check> {
    let mut checks = vec![credentials(choice)];
    if let Some(Err(failure)) = choice.signing_key.as_deref().map(read_signer) {
        checks.push(Check::failed(AREA, &failure));
    }
    let link = match choice.connect("doctor").await {
        Ok(link) => link,
        Err(failure) => {
            checks.push(Check::failed(AREA, &failure));
            return checks;
        }
    };
    let (address, version) = (&choice.address, link.server_version());
    checks.push(Check::ok(AREA, format!("{address}: nats-server {version}")));
    let unusable = |error: &LinkError| Check::failed(AREA, &choice.unusable(error));
    match inspect(&link).await {
        Ok(streams) => checks.extend(streams.iter().flat_map(|stream| of_stream(choice, stream))),
        Err(error) => checks.push(unusable(&error)),
    }
    match workers(choice, &link).await {
        Ok(found) => checks.extend(found),
        Err(error) => checks.push(unusable(&error)),
    }
    checks
}

fn credentials(choice: &ClusterChoice) -> Check {
    let credentials = &choice.credentials;
    match (&credentials.key_file, &credentials.certificate) {
        (Some(file), _) => Check::ok(AREA, format!("key: {}", file.display())),
        (None, Some((file, _))) => Check::ok(AREA, format!("certificate: {}", file.display())),
        (None, None) => Check::note(AREA, "no key: all who reach NATS may run what the workers allow")
            .with_fix("ahma_mcp cluster keys makes keys and an account, unless this is one machine"),
    }
}

fn of_stream(choice: &ClusterChoice, stream: &StreamReport) -> Vec<Check> {
    let name = &stream.name;
    let again = || {
        format!(
            "ahma_mcp cluster init --cluster {} --pool {}, with the limits you chose, sets it again",
            choice.address, choice.pool
        )
    };
    let mut checks: Vec<Check> = stream
        .faults
        .iter()
        .map(|fault| Check::problem(AREA, format!("stream {name}: {fault}")).with_fix(again()))
        .collect();
    if !stream.copies.behind.is_empty() {
        let behind = stream.copies.behind.join(", ");
        checks.push(Check::warning(
            AREA,
            format!("stream {name}: the copy of {behind} is not up to date"),
        ));
    }
    let parts = [
        (stream.state.bytes, stream.max_bytes, "bytes"),
        (stream.state.messages, stream.max_messages, "messages"),
    ];
    for (used, limit, unit) in parts {
        if let Some(limit) = limit.filter(|limit| used > limit / 10 * 8) {
            let what = format!("stream {name}: {used} of {limit} {unit} are used");
            checks.push(
                Check::warning(AREA, what).with_fix("ahma_mcp cluster init with a higher limit raises it"),
            );
        }
    }
    if checks.is_empty() {
        let copies = match stream.copies.wanted {
            1 => String::new(),
            copies => format!(", {copies} copies"),
        };
        let (messages, bytes) = (stream.state.messages, stream.state.bytes);
        checks.push(Check::ok(
            AREA,
            format!("stream {name}: {messages} messages, {bytes} bytes{copies}"),
        ));
    }
    checks
}

async fn workers(choice: &ClusterChoice, link: &Link) -> Result<Vec<Check>, LinkError> {
    let heard = roll_call(link, ROLL_CALL).await?;
    if heard.is_empty() {
        let none = format!("no worker of pool {} answers", choice.pool);
        let start = format!(
            "ahma_mcp worker --cluster {} --pool {}",
            choice.address, choice.pool
        );
        return Ok(vec![Check::warning(AREA, none).with_fix(start)]);
    }
    Ok(heard.iter().map(of_worker).collect())
}

fn of_worker(Heard { beat, clock_ahead_ms }: &Heard) -> Check {
    let ours = env!("CARGO_PKG_VERSION");
    let worker = &beat.worker;
    if beat.version != ours {
        let versions = format!("worker {worker}: version {}, and this is {ours}", beat.version);
        return Check::warning(AREA, versions).with_fix("use the same version everywhere");
    }
    match clock_ahead_ms {
        Some(ahead) if ahead.unsigned_abs() > CLOCK_TOLERANCE_MS => {
            let direction = if *ahead > 0 { "ahead of" } else { "behind" };
            let seconds = ahead.unsigned_abs() / 1_000;
            let what = format!("worker {worker}: its clock is {seconds} s {direction} this machine's");
            Check::warning(AREA, what).with_fix("let both machines set their clocks by NTP")
        }
        _ => Check::ok(
            AREA,
            format!("worker {worker}: {} of {} running", beat.running, beat.slots),
        ),
    }
}

#[cfg(test)]
mod tests {
    use ahma_cluster::Beat;
    use serde_json::json;

    use super::*;

    #[test]
    fn clocks_and_versions_that_differ_are_told() {
        let check = |version: &str, clock_ahead_ms, expected: &str| {
            let beat = Beat {
                worker: "w".to_owned(),
                version: version.to_owned(),
                ..Beat::default()
            };
            let check = json!(of_worker(&Heard { beat, clock_ahead_ms }));
            let found = format!(
                "{} {}",
                check["status"].as_str().unwrap(),
                check["what"].as_str().unwrap()
            );
            assert_eq!(found, expected);
        };
        let ours = env!("CARGO_PKG_VERSION");
        check(ours, Some(-4_999), "ok worker w: 0 of 0 running");
        check(ours, None, "ok worker w: 0 of 0 running");
        let text = "warning worker w: its clock is 90 s ahead of this machine's";
        check(ours, Some(90_000), text);
        let text = "warning worker w: its clock is 6 s behind this machine's";
        check(ours, Some(-6_000), text);
        let text = format!("warning worker w: version 0.0.1, and this is {ours}");
        check("0.0.1", Some(0), &text);
    }
}
