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
    let mut text = String::new();
    let mut write = |name: String, mode: u32, content: &str, what: &str| -> Result<(), Failure> {
        let file = directory.join(name);
        write_new(&file, mode, content)?;
        let _ = writeln!(text, "{}  {what}", file.display());
        Ok(())
    };
    for key in &roles {
        let name = key.role.name();
        write(
            format!("{pool}-{name}.nk"),
            SECRET,
            &format!("{}\n", key.seed),
            &format!("secret: --cluster-key of a {name}"),
        )?;
    }
    write(
        format!("{pool}-signing.nk"),
        SECRET,
        &format!("{}\n", signing.seed),
        "secret: --signing-key of a front-end",
    )?;
    write(
        format!("{pool}-request-keys"),
        PUBLIC,
        &format!("{}\n", signing.public_key),
        "--request-keys of a worker",
    )?;
    write(
        format!("{pool}-account.conf"),
        PUBLIC,
        &account(pool, &roles),
        "include it in the block `accounts` of nats.conf",
    )?;
    Ok(text)
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
