use clap::Parser as _;

use super::*;
use crate::{
    sandbox::{Network, Tier, Toolchain, Toolchains},
    shell::TierChoice,
};

fn resolve_in(directory: &Path, flags: &[&str]) -> Result<Settings, Failure> {
    let environment = Environment {
        working_directory: directory.to_owned(),
        home: Some(directory.join("home")),
        cache_home: None,
        config_home: None,
        state_home: None,
        colour: true,
        cores: 3,
        ..Default::default()
    };
    let args =
        Args::try_parse_from(std::iter::once("ahma_mcp").chain(flags.iter().copied())).expect("valid flags");
    Settings::resolve(args, &environment)
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().canonicalize().expect("it exists");
    std::fs::create_dir(path.join("home")).expect("writable");
    (directory, path)
}

#[test]
fn without_flags_everything_has_its_default() {
    let (_guard, path) = directory();
    let settings = resolve_in(&path, &[]).expect("defaults are valid");
    assert_eq!(settings.mode, Mode::Stdio);
    assert_eq!(settings.tools_dir, path.join(".ahma/tools"));
    let (cache, state) = match cfg!(target_os = "macos") {
        true => ("Library/Caches/ahma_mcp", "Library/Application Support/ahma_mcp"),
        false => (".cache/ahma_mcp", ".local/state/ahma_mcp"),
    };
    assert_eq!(settings.state_dir, Some(path.join("home").join(state)));
    assert_eq!(
        settings.sandbox,
        RequestedSandbox {
            scope: path.clone(),
            scope_aliases: Vec::new(),
            deferred: false,
            tier: TierChoice::Highest,
            proven: None,
            sandbox_exec: None,
            allow_read: Vec::new(),
            allow_write: Vec::new(),
            allow_tmp: false,
            pass_env: Vec::new(),
            toolchains: Toolchains::Auto,
            network: Network::Open,
            trust_workspace_config: false,
            deny_sensitive_reads: false,
            out_of_reach: Vec::new(),
            shared_checks: None,
            one_of_many: false,
            warnings: Vec::new(),
        }
    );
    assert_eq!(
        settings.execution,
        ExecutionSettings {
            shell: None,
            force_sync: false,
            files: true,
            expose: Expose::Core,
            inline_wait: Duration::from_secs(5),
            sync_wait: None,
            timeout: Duration::from_secs(600),
            max_operations: NonZeroUsize::new(12).expect("not zero"),
            max_result_bytes: 7_500,
            results: ResultForm::Text,
            keep: Some(KeepLimits {
                age: Duration::from_secs(7 * 86_400),
                bytes: 2 << 30,
            }),
        }
    );
    let directory = Some(path.join("home").join(cache));
    assert_eq!(
        settings.log,
        LogSettings {
            to_stderr: false,
            debug: false,
            colour: true,
            directory
        }
    );
}

#[test]
fn the_network_flags_agree_or_are_refused() {
    let (_guard, path) = directory();
    for (flags, expected) in [
        (&["--network", "loopback"][..], Some(Network::Loopback)),
        (&["--restrict-network"], Some(Network::Off)),
        (&["--restrict-network", "--network", "off"], Some(Network::Off)),
        (&["--restrict-network", "--network", "open"], None),
        (
            &["--allow-connect", "443,80"],
            Some(Network::Ports(vec![443, 80])),
        ),
        (
            &["--allow-connect", "443", "--network", "ports"],
            Some(Network::Ports(vec![443])),
        ),
        (&["--allow-connect", "443", "--network", "open"], None),
        (&["--allow-connect", "443", "--restrict-network"], None),
        (&["--network", "ports"], None),
    ] {
        let network = resolve_in(&path, flags)
            .ok()
            .map(|settings| settings.sandbox.network);
        assert_eq!(network, expected, "{flags:?}");
    }
}

#[test]
fn toolchains_are_auto_none_or_names() {
    let (_guard, path) = directory();
    for (flag, expected) in [
        ("auto", Some(Toolchains::Auto)),
        ("none", Some(Toolchains::None)),
        (
            "rust,git",
            Some(Toolchains::Only(vec![Toolchain::Rust, Toolchain::Git])),
        ),
        ("none,git", None),
        ("cobol", None),
    ] {
        let toolchains = resolve_in(&path, &["--toolchains", flag])
            .ok()
            .map(|settings| settings.sandbox.toolchains);
        assert_eq!(toolchains, expected, "{flag}");
    }
}

#[test]
fn too_wide_a_scope_must_be_named() {
    let (_guard, path) = directory();
    let home = path.join("home");
    let environment = Environment {
        working_directory: home.clone(),
        home: Some(home.clone()),
        cores: 1,
        ..Default::default()
    };
    let args = |flags: &[&str]| {
        Args::try_parse_from(std::iter::once(&"ahma_mcp").chain(flags)).expect("valid flags")
    };

    let refused = Settings::resolve(args(&[]), &environment).expect_err("a home is too wide");
    assert!(refused.to_string().contains("whole home directory"), "{refused}");
    let named = home.to_str().expect("plain text");
    let settings =
        Settings::resolve(args(&["--sandbox-scope", named]), &environment).expect("named, so allowed");
    assert_eq!(settings.sandbox.scope, home);
    assert_eq!(settings.sandbox.warnings.len(), 1);
}

#[test]
fn a_scope_that_is_no_directory_is_named_in_the_error() {
    let (_guard, path) = directory();
    std::fs::write(path.join("file"), "").expect("writable");
    for scope in ["missing", "file"] {
        let failure = resolve_in(&path, &["--sandbox-scope", scope]).expect_err("unusable");
        assert!(failure.to_string().contains(scope), "{failure}");
    }
}

#[test]
fn tool_files_are_looked_for_in_the_scope_and_then_here() {
    let (_guard, path) = directory();
    let scope = path.join("project");
    std::fs::create_dir(&scope).expect("writable");
    let tools_dir = |flags: &[&str]| {
        let settings = resolve_in(&path, flags).expect("valid");
        (settings.tools_dir.clone(), settings.of_the_project().tools_dir)
    };
    let flags = ["--sandbox-scope", scope.to_str().expect("plain text")];
    let (here, in_scope) = (path.join(".ahma/tools"), scope.join(".ahma/tools"));
    assert_eq!(tools_dir(&flags), (in_scope.clone(), in_scope.clone()));
    std::fs::create_dir_all(&here).expect("writable");
    // A task about the project must not act on another one.
    assert_eq!(tools_dir(&flags), (here, in_scope.clone()));
    std::fs::create_dir_all(&in_scope).expect("writable");
    assert_eq!(tools_dir(&flags), (in_scope.clone(), in_scope));
    let elsewhere = path.join("elsewhere");
    assert_eq!(
        tools_dir(&[&flags[..], &["--tools-dir", "elsewhere"]].concat()),
        (elsewhere.clone(), elsewhere)
    );
}

#[test]
fn a_relative_shell_is_refused() {
    let (_guard, path) = directory();
    assert!(resolve_in(&path, &["--shell", "bash"]).is_err());
    assert!(resolve_in(&path, &["--shell", "/bin/sh"]).is_ok());
}

#[test]
fn the_sandbox_is_off_only_by_name() {
    let (_guard, path) = directory();
    for (flags, expected) in [
        (&[][..], Some(TierChoice::Highest)),
        (&["--sandbox-tier", "core"], Some(TierChoice::Only(Tier::Core))),
        (&["--no-sandbox"], Some(TierChoice::Only(Tier::Off))),
        (&["--no-sandbox", "--sandbox-tier", "full"], None),
    ] {
        assert_eq!(
            resolve_in(&path, flags)
                .ok()
                .map(|settings| settings.sandbox.tier),
            expected,
            "{flags:?}"
        );
    }
}

#[test]
fn a_scope_that_was_judged_and_replaced_since_is_refused() {
    let (_guard, path) = directory();
    std::fs::create_dir_all(path.join("project/inner")).expect("writable");
    std::fs::create_dir_all(path.join("elsewhere/inner")).expect("writable");
    let flags = |scope: &str| {
        let scope = path.join(scope).display().to_string();
        resolve_in(&path, &["--sandbox-scope", &scope, "--scope-is-final"])
    };
    for scope in ["project", "project/inner"] {
        let settings = flags(scope).expect("it is a real directory");
        assert_eq!(settings.sandbox.scope, path.join(scope));
    }
    std::fs::rename(path.join("project"), path.join("moved")).expect("writable");
    std::os::unix::fs::symlink(path.join("elsewhere"), path.join("project")).expect("writable");
    for scope in ["project", "project/inner"] {
        let failure = flags(scope).expect_err("a link is in its place");
        assert!(failure.to_string().contains("was replaced"), "{failure}");
    }
}

#[test]
fn as_many_operations_run_at_once_as_the_machine_can_hold() {
    for (cores, operations) in [(0, 1), (1, 4), (3, 12), (1000, 128)] {
        assert_eq!(EngineSettings::operations_on(cores).get(), operations, "{cores}");
    }
}

#[test]
fn each_platform_has_its_own_directories() {
    for (platform, cache, state) in [
        (Platform::Linux, "/x/cache/ahma_mcp", "/x/state/ahma_mcp"),
        (
            Platform::MacOs,
            "/Users/me/Library/Caches/ahma_mcp",
            "/Users/me/Library/Application Support/ahma_mcp",
        ),
    ] {
        let environment = Environment {
            platform,
            home: Some("/Users/me".into()),
            cache_home: Some("/x/cache".into()),
            state_home: Some("/x/state".into()),
            ..Default::default()
        };
        assert_eq!(log_directory(&environment), Some(cache.into()));
        assert_eq!(state_dir(&environment), Some(state.into()));
    }
}
