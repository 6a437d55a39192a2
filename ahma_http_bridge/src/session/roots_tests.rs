use super::*;

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

async fn judge(within: Option<&Path>, value: serde_json::Value) -> RootsAnswer {
    let rule = RootsRule {
        default_scope: "/default".into(),
        within: within.map(Path::to_owned),
    };
    rule.judge(Some(&raw(&value))).await
}

fn roots(uris: &[&str]) -> serde_json::Value {
    let roots: Vec<_> = uris.iter().map(|uri| serde_json::json!({ "uri": uri })).collect();
    serde_json::json!({ "roots": roots })
}

#[tokio::test]
async fn a_root_is_percent_decoded_and_made_canonical() {
    let temp = tempfile::tempdir().unwrap();
    let top = temp.path().canonicalize().unwrap();
    let odd = top.join("a b#c?ä%");
    std::fs::create_dir(&odd).unwrap();
    std::os::unix::fs::symlink(&odd, top.join("link")).unwrap();
    let encoded = Url::from_file_path(&odd).unwrap();
    for uri in [
        encoded.as_str().to_owned(),
        format!("file://{}/link", top.display()),
        format!("{encoded}/."),
    ] {
        let found = judge(None, roots(&[&uri, "file:///second"])).await;
        assert_eq!(found, RootsAnswer::Scope(odd.clone()), "{uri}");
    }
}

#[tokio::test]
async fn without_roots_the_default_scope_is_used() {
    let expected = RootsAnswer::Default("/default".into());
    assert_eq!(judge(None, roots(&[])).await, expected);
    assert_eq!(judge(None, serde_json::json!({})).await, expected);
    let rule = RootsRule {
        default_scope: "/default".into(),
        within: None,
    };
    assert_eq!(rule.judge(None).await, expected);
}

#[tokio::test]
async fn what_cannot_be_a_scope_is_refused_with_its_reason() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    std::fs::write(&file, "").unwrap();
    let file = format!("file://{}", file.display());
    let table = [
        ("file:///no/such/place", "cannot be used"),
        (file.as_str(), "not a directory"),
        ("file:///", "too wide"),
        ("file:///tmp/..", "too wide"),
        ("file://server/share", "not a path on this machine"),
        ("https://example.com/", "only file:// roots"),
        ("vscode-remote://wsl/x", "only file:// roots"),
        ("file:///tmp?x", "no query"),
        ("file:///tmp%00x", "cannot be used"),
        ("/tmp", "not a URI"),
    ];
    for (uri, expected) in table {
        match judge(None, roots(&[uri])).await {
            RootsAnswer::Unusable(why) => assert!(why.contains(expected), "{uri}: {why}"),
            other => panic!("{uri}: {other:?}"),
        }
    }
    let root = format!("file://{}", temp.path().display());
    let odd = [
        serde_json::json!({ "roots": 7 }),
        serde_json::json!([[{ "uri": root }]]),
        serde_json::json!({ "roots": [[root]] }),
        serde_json::json!(null),
    ];
    for odd in odd {
        let found = judge(None, odd.clone()).await;
        assert!(matches!(found, RootsAnswer::Unusable(_)), "{odd}");
    }
}

#[tokio::test]
async fn a_confined_client_cannot_choose_a_scope_outside() {
    let temp = tempfile::tempdir().unwrap();
    let top = temp.path().canonicalize().unwrap();
    for name in ["mine", "mine-too"] {
        std::fs::create_dir_all(top.join(name).join("project")).unwrap();
    }
    let mine = top.join("mine");
    let inside = format!("file://{}/project", mine.display());
    let outside = format!("file://{}/../mine-too", mine.display());
    let found = judge(Some(&mine), roots(&[&inside])).await;
    assert_eq!(found, RootsAnswer::Scope(mine.join("project")));
    let refused = judge(Some(&mine), roots(&[&outside])).await;
    assert!(matches!(refused, RootsAnswer::Unusable(why) if why.contains("confined")));
}

#[tokio::test]
async fn a_confined_client_learns_nothing_of_what_is_outside() {
    let temp = tempfile::tempdir().unwrap();
    let top = temp.path().canonicalize().unwrap();
    let mine = top.join("mine");
    std::fs::create_dir_all(&mine).unwrap();
    std::fs::create_dir_all(top.join("other")).unwrap();
    std::fs::write(top.join("file"), "").unwrap();
    std::os::unix::fs::symlink(top.join("file"), mine.join("to-file")).unwrap();
    std::os::unix::fs::symlink(top.join("nowhere"), mine.join("to-nowhere")).unwrap();
    let paths = [
        "other",
        "file",
        "nowhere",
        "file/below",
        "mine/to-file",
        "mine/to-nowhere",
        "mine/to-file/below",
        "mine/nowhere",
    ];
    for path in paths {
        let uri = format!("file://{}/{path}", top.display());
        let expected = format!(
            "root {uri}: this client is confined to {}, and the root must be a directory there",
            mine.display()
        );
        let refused = judge(Some(&mine), roots(&[&uri])).await;
        assert_eq!(refused, RootsAnswer::Unusable(expected));
    }
    for uri in ["file:///", "file:///proc/self/exe"] {
        let refused = judge(Some(&mine), roots(&[uri])).await;
        assert!(matches!(refused, RootsAnswer::Unusable(why) if why.contains("confined")));
    }
}

#[tokio::test]
async fn a_reason_repeats_only_so_much_of_a_root() {
    for start in ["x", "x:", "file:///", "file:///?"] {
        let uri = format!("{start}{}", "ä".repeat(1 << 20));
        for within in [None, Some(Path::new("/mine"))] {
            match judge(within, roots(&[&uri])).await {
                RootsAnswer::Unusable(why) => assert!(why.len() < 10_000, "{} bytes", why.len()),
                other => panic!("{start}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_directory_that_holds_the_home_is_too_wide() {
    let temp = tempfile::tempdir().unwrap();
    let top = temp.path().canonicalize().unwrap();
    std::fs::create_dir_all(top.join("home/user/project")).unwrap();
    std::os::unix::fs::symlink(top.join("home/user"), top.join("link")).unwrap();
    let table = [
        ("", true),
        ("home", true),
        ("home/user", true),
        ("home/user/project", false),
        ("home/user2", false),
        ("other", false),
    ];
    for (scope, expected) in table {
        for home in ["home/user", "link"] {
            let found = is_too_wide(&top.join(scope), Some(&top.join(home)));
            assert_eq!(found, expected, "{scope} with the home at {home}");
        }
    }
    assert!(is_too_wide(Path::new("/"), None));
}
