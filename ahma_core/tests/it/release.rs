//! Agreement of the parts of a release.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_file_names_the_same_version() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = read("CHANGELOG.md");
    let newest = changelog
        .lines()
        .find_map(|line| line.strip_prefix("## "))
        .expect("a version");
    assert_eq!(newest.split_whitespace().next(), Some(version), "CHANGELOG.md");
    let server: Value = serde_json::from_str(&read("server.json")).expect("JSON");
    assert_eq!(server["version"], version, "server.json");
    let image = server["packages"][0]["identifier"].as_str().expect("an image");
    assert!(image.ends_with(&format!(":{version}")), "server.json: {image}");
    // Of the modes of `--network`, those that a container can have without arguments.
    let network = &server["packages"][0]["environmentVariables"][0];
    assert_eq!(network["name"], "AHMA_NETWORK");
    assert_eq!(network["choices"], serde_json::json!(["open", "off"]));
    // The registry finds the owner of an image by this label.
    let label = format!(
        "io.modelcontextprotocol.server.name=\"{}\"",
        server["name"].as_str().expect("a name")
    );
    assert!(read("Dockerfile").contains(&label), "Dockerfile lacks {label}");
}

#[test]
fn the_version_names_the_commit_wherever_git_keeps_it_and_does_without_git() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let build = Build::new();
    assert_eq!(build.run(&[]).0, "", "a tarball has no commit");
    let head = ("HEAD", "ref: refs/heads/main\n");
    for (name, files) in [
        ("detached", &[("HEAD", COMMIT)][..]),
        ("loose", &[head, ("refs/heads/main", COMMIT)]),
        (
            "packed",
            &[
                head,
                ("packed-refs", &format!("# pack-refs\n{COMMIT} refs/heads/main\n")),
            ],
        ),
    ] {
        let (suffix, watched) = build.run(files);
        assert_eq!(suffix, " (0123456789)", "{name}");
        assert!(
            watched.iter().any(|path| path.ends_with(".git/HEAD")),
            "{name}: {watched:?}"
        );
    }
    assert_eq!(build.run(&[head]).0, "", "a repository without commits");
}

/// The build script, to be run on a made-up checkout.
struct Build {
    directory: TempDir,
}

impl Build {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
        let compiled = Command::new("rustc")
            .args(["--edition", "2024", "-o"])
            .arg(directory.path().join("build"))
            .arg(source)
            .status()
            .expect("rustc is on PATH");
        assert!(compiled.success());
        Self { directory }
    }

    /// With these files in `.git`: what `--version` gets, and the files that are watched.
    fn run(&self, git: &[(&str, &str)]) -> (String, Vec<PathBuf>) {
        let checkout = tempfile::tempdir().expect("a temporary directory");
        for directory in ["crate", "out", "packs"] {
            fs::create_dir_all(checkout.path().join(directory)).expect("writable");
        }
        for (name, text) in git {
            let path = checkout.path().join(".git").join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
            fs::write(path, text).expect("writable");
        }
        let output = Command::new(self.directory.path().join("build"))
            .env("CARGO_MANIFEST_DIR", checkout.path().join("crate"))
            .env("OUT_DIR", checkout.path().join("out"))
            .env_remove("AHMA_COMMIT")
            .output()
            .expect("it starts");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let all = |key: &str| -> Vec<String> {
            text.lines()
                .filter_map(|line| line.strip_prefix(key))
                .map(str::to_owned)
                .collect()
        };
        let suffix = all("cargo::rustc-env=COMMIT_SUFFIX_OF_AHMA=").concat();
        let watched: Vec<_> = all("cargo::rerun-if-changed=")
            .into_iter()
            .map(PathBuf::from)
            .collect();
        // A file that does not exist would mean a rebuild each time.
        assert!(watched.iter().all(|path| path.exists()), "{watched:?}");
        (suffix, watched)
    }
}
