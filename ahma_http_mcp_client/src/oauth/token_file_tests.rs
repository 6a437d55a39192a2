use std::{
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
};

use rmcp::transport::auth::StoredCredentials;

use super::token_file::{TokenEntry, TokenFile, TokenFileError};

fn entry(client_id: &str) -> TokenEntry {
    TokenEntry {
        credentials: StoredCredentials::new(client_id.to_owned(), None, vec![], None),
        client_secret: Some("s".to_owned()),
    }
}

async fn put(file: &TokenFile, server: &str, client_id: &'static str) {
    file.update(server, move |slot| {
        *slot = Some(entry(client_id));
        true
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn keeps_servers_apart_in_a_private_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = TokenFile::at(dir.path().join("t.json"));
    assert!(file.entry("a").await.unwrap().is_none());
    put(&file, "a", "id-a").await;
    put(&file, "b", "id-b").await;
    assert_eq!(
        file.entry("a").await.unwrap().unwrap().credentials.client_id,
        "id-a"
    );
    assert_eq!(
        file.entry("b").await.unwrap().unwrap().client_secret.as_deref(),
        Some("s")
    );
    assert_eq!(std::fs::metadata(file.path()).unwrap().mode() & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "only the file and its lock remain: {names:?}");
}

#[tokio::test]
async fn traps_are_refused() {
    type Lay = fn(&Path, &Path);
    let cases: [(&str, Lay); 4] = [
        ("is a symbolic link", |path, other| symlink(other, path).unwrap()),
        ("has a second name (hard link)", |path, other| {
            std::fs::hard_link(other, path).unwrap()
        }),
        ("is not a regular file", |path, _| {
            std::fs::create_dir(path).unwrap()
        }),
        ("can be written by others", |path, other| {
            std::fs::copy(other, path).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (reason, lay) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("t.json"), dir.path().join("other"));
        std::fs::write(&other, "{}").unwrap();
        lay(&path, &other);
        let file = TokenFile::at(&path);
        let read = file.entry("a").await.err().unwrap();
        assert!(
            matches!(&read, TokenFileError::Untrusted { reason: found, .. } if *found == reason),
            "{read:?}"
        );
        file.update("a", |slot| {
            *slot = Some(entry("x"));
            true
        })
        .await
        .unwrap_err();
        assert_eq!(
            std::fs::read_to_string(&other).unwrap(),
            "{}",
            "{reason}: wrote through it"
        );
    }
}

#[tokio::test]
async fn a_readable_file_is_closed_and_a_damaged_one_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = TokenFile::at(dir.path().join("t.json"));
    put(&file, "a", "id").await;
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(file.entry("a").await.unwrap().is_some());
    assert_eq!(std::fs::metadata(file.path()).unwrap().mode() & 0o777, 0o600);
    std::fs::write(file.path(), "not json").unwrap();
    assert!(matches!(
        file.entry("a").await,
        Err(TokenFileError::Damaged { .. })
    ));
}

#[tokio::test]
async fn concurrent_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = TokenFile::at(dir.path().join("t.json"));
    let writers = (0..20).map(|n| {
        let file = file.clone();
        async move { put(&file, &format!("server{n}"), "id").await }
    });
    futures::future::join_all(writers).await;
    for n in 0..20 {
        assert!(
            file.entry(&format!("server{n}")).await.unwrap().is_some(),
            "server{n} was lost"
        );
    }
}

/// Only root can create a file of another user.
#[tokio::test]
async fn two_users_have_separate_files() {
    let dir = tempfile::tempdir().unwrap();
    let common = dir.path().join(TokenFile::FILE_NAME);
    let user = rustix::process::geteuid().as_raw();
    let own = dir.path().join(format!("mcp_http_token.{user}.json"));
    assert_eq!(TokenFile::of_user_in(dir.path()).path(), common);
    std::fs::write(&common, "{}").unwrap();
    assert_eq!(TokenFile::of_user_in(dir.path()).path(), common, "it is mine");
    if std::os::unix::fs::chown(&common, Some(user + 1), None).is_err() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let file = TokenFile::of_user_in(dir.path());
    assert_eq!(file.path(), own);
    put(&file, "a", "id-a").await;
    std::fs::remove_file(&common).unwrap();
    let file = TokenFile::of_user_in(dir.path());
    assert_eq!(file.path(), own, "the login is still there");
    assert!(file.entry("a").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_never_released_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let file = TokenFile::at(dir.path().join("t.json"));
    let held = file.lock("refresh").await.unwrap();
    assert!(matches!(
        file.lock("refresh").await,
        Err(TokenFileError::Busy { .. })
    ));
    drop(held);
    file.lock("refresh").await.unwrap();
}
