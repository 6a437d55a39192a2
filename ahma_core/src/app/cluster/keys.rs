//! `ahma_mcp cluster keys`: secrets for each role of a pool, and their account for NATS.

use std::{
    fmt::Write as _,
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use ahma_cluster::{Pool, Role, RoleKey, account};

use crate::app::exit::Failure;

/// Writes the files, and returns a description of them.
pub(super) fn make(pool: &Pool, directory: &Path) -> Result<String, Failure> {
    let key = |role| RoleKey::new(role).map_err(|error| Failure::internal("a key could not be made", &error));
    let roles = [key(Role::FrontEnd)?, key(Role::Worker)?, key(Role::Operator)?];
    // Not a user of NATS: it signs what front ends ask of workers.
    let signing = key(Role::FrontEnd)?;
    let secret_of = |key: &RoleKey| {
        let name = key.role.name();
        let seed = format!("{}\n", key.seed);
        (
            format!("{pool}-{name}.nk"),
            SECRET,
            seed,
            format!("secret: --cluster-key of {}", plural(key.role)),
        )
    };
    let mut files: Vec<(String, u32, String, String)> = roles.iter().map(secret_of).collect();
    let mut add = |name: &str, mode: u32, content: String, what: &str| {
        files.push((format!("{pool}-{name}"), mode, content, what.to_owned()));
    };
    let (seed, public_key) = (format!("{}\n", signing.seed), format!("{}\n", signing.public_key));
    add("signing.nk", SECRET, seed, "secret: --signing-key of front ends");
    add("request-keys", PUBLIC, public_key, "--request-keys of workers");
    let account = account(pool, &roles);
    add(
        "account.conf",
        PUBLIC,
        account,
        "include it in the block `accounts` of nats.conf",
    );
    let mut text = String::new();
    for (name, mode, content, what) in files {
        let file = directory.join(name);
        write_new(&file, mode, &content)?;
        let _ = writeln!(text, "{}  {what}", file.display());
    }
    Ok(text)
}

fn plural(role: Role) -> &'static str {
    match role {
        Role::FrontEnd => "front ends",
        Role::Worker => "workers",
        Role::Operator => "operators",
    }
}

/// Mode of files for the owner only.
const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;

fn write_new(file: &PathBuf, mode: u32, content: &str) -> Result<(), Failure> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(file);
    let written = made.and_then(|mut made| made.write_all(content.as_bytes()));
    written.map_err(|error| {
        Failure::user(format!("{} cannot be written: {error}", file.display()))
            .with_hint("give --directory a directory that exists and has no keys of this pool yet")
    })
}
