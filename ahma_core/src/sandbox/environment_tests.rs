use std::path::Path;

use super::environment;

#[test]
fn secrets_stay_with_the_server() {
    let server = [
        ("PATH", "/usr/bin"),
        ("LC_ALL", "C.UTF-8"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("GITHUB_TOKEN", "s3cret"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("LD_PRELOAD", "/evil.so"),
        ("BASH_ENV", "/evil.sh"),
        ("WANTED", "yes"),
        ("https_proxy", "http://proxy:3128"),
        ("HTTP_PROXY", "http://me:s3cret@proxy:3128"),
        ("TMPDIR", "/somewhere/else"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let chosen = environment(server, &["WANTED".to_owned()], Path::new("/tmp"));
    for (name, value) in [
        ("PATH", Some("/usr/bin")),
        ("LC_ALL", Some("C.UTF-8")),
        ("WANTED", Some("yes")),
        ("https_proxy", Some("http://proxy:3128")),
        ("TMPDIR", Some("/tmp")),
        ("TERM", Some("dumb")),
        ("GIT_TERMINAL_PROMPT", Some("0")),
        ("PYTHONUNBUFFERED", Some("1")),
        ("PIP_CACHE_DIR", Some("/tmp/cache/pip")),
        ("HTTP_PROXY", None),
        ("AWS_SECRET_ACCESS_KEY", None),
        ("SSH_AUTH_SOCK", None),
        ("LD_PRELOAD", None),
        ("BASH_ENV", None),
        ("CI", None),
    ] {
        assert_eq!(chosen.get(name).map(String::as_str), value, "{name}");
    }
    assert!(!chosen.values().any(|value| value.contains("s3cret")));
}
