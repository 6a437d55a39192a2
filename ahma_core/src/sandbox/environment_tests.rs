use std::path::Path;

use super::{Platform, environment};

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
    let chosen = environment(server, &["WANTED".to_owned()], Path::new("/tmp"), Platform::Linux);
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

#[test]
fn tools_of_macos_are_led_to_the_private_directory() {
    let temp = Path::new("/private/var/folders/xy/z/T/ahma_mcp-501/12-ab/tmp");
    let of = |platform, temp| environment([], &[], temp, platform);
    let chosen = of(Platform::MacOs, temp);
    for (name, value) in [
        (
            "xcrun_db",
            "/private/var/folders/xy/z/T/ahma_mcp-501/12-ab/tmp/xcrun_db",
        ),
        (
            "TMPPREFIX",
            "/private/var/folders/xy/z/T/ahma_mcp-501/12-ab/tmp/zsh",
        ),
        ("DIRHELPER_USER_DIR_SUFFIX", "ahma_mcp-501/12-ab/tmp"),
    ] {
        assert_eq!(chosen[name], value, "{name}");
        assert!(!of(Platform::Linux, temp).contains_key(name), "{name}");
    }
    let elsewhere = of(Platform::MacOs, Path::new("/private/tmp/T/ahma"));
    assert!(!elsewhere.contains_key("DIRHELPER_USER_DIR_SUFFIX"));
}
