//! Toolchain presets: the exact paths a compiler or package manager needs, never a whole home, never credentials.
//!
//! A file that a command writes into a shared cache would run later outside the sandbox. So caches are read, written only
//! through a copy-on-write overlay, or replaced by private ones (see `environment`).

use std::path::PathBuf;

use super::{Access, assemble::Host};

/// The presets that apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Toolchains {
    /// Every preset whose directories exist.
    Auto,
    None,
    Only(Vec<Toolchain>),
}

/// One preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolchain {
    Rust,
    Node,
    Python,
    Go,
    Java,
    Git,
}

impl Toolchain {
    pub const ALL: &[Self] = &[
        Self::Rust,
        Self::Node,
        Self::Python,
        Self::Go,
        Self::Java,
        Self::Git,
    ];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Node => "node",
            Self::Python => "python",
            Self::Go => "go",
            Self::Java => "java",
            Self::Git => "git",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Presets {
    pub(super) grants: Vec<(PathBuf, Access, &'static str)>,
    pub(super) overlays: Vec<PathBuf>,
}

pub(super) fn presets(toolchains: &Toolchains, host: &Host) -> Presets {
    let chosen: &[Toolchain] = match toolchains {
        Toolchains::Auto => Toolchain::ALL,
        Toolchains::None => &[],
        Toolchains::Only(chosen) => chosen,
    };
    let mut presets = Presets::default();
    let Some(home) = &host.home else { return presets };
    // A variable that points at, or above, the home directory would open all of it.
    let from = |variable: &str, default: &str| {
        host.variables
            .get(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute() && !home.starts_with(path))
            .unwrap_or_else(|| home.join(default))
    };
    for toolchain in chosen {
        let name = toolchain.name();
        let mut read = |path: PathBuf| presets.grants.push((path, Access::Read, name));
        match toolchain {
            Toolchain::Rust => {
                let cargo = from("CARGO_HOME", ".cargo");
                read(cargo.join("config.toml"));
                read(cargo.join("config"));
                read(cargo.join("env"));
                presets
                    .grants
                    .push((cargo.join("bin"), Access::ReadExecute, name));
                presets
                    .grants
                    .push((from("RUSTUP_HOME", ".rustup"), Access::ReadExecute, name));
                presets
                    .overlays
                    .extend([cargo.join("registry"), cargo.join("git")]);
            }
            Toolchain::Node => {
                let nvm = from("NVM_DIR", ".nvm");
                for path in [
                    nvm.join("versions"),
                    home.join(".volta/bin"),
                    home.join(".volta/tools"),
                    home.join(".local/share/fnm"),
                    home.join(".local/share/pnpm"),
                    home.join("Library/Application Support/fnm"),
                    home.join("Library/pnpm"),
                ] {
                    presets.grants.push((path, Access::ReadExecute, name));
                }
            }
            Toolchain::Python => {
                for path in [
                    from("PYENV_ROOT", ".pyenv"),
                    home.join(".local/lib"),
                    home.join("Library/Python"),
                    // Not its parent, which also holds `uv auth` credentials.
                    home.join(".local/share/uv/python"),
                    home.join(".local/share/uv/tools"),
                    home.join(".local/share/pipx"),
                ] {
                    presets.grants.push((path, Access::ReadExecute, name));
                }
                if host.variables.contains_key("VIRTUAL_ENV") {
                    presets
                        .grants
                        .push((from("VIRTUAL_ENV", ".venv"), Access::ReadExecute, name));
                }
            }
            Toolchain::Go => {
                let go = from("GOPATH", "go");
                presets.grants.push((go.join("bin"), Access::ReadExecute, name));
                presets.overlays.push(go.join("pkg/mod"));
            }
            Toolchain::Java => {
                if host.variables.contains_key("JAVA_HOME") {
                    presets
                        .grants
                        .push((from("JAVA_HOME", ".jdk"), Access::ReadExecute, name));
                }
                presets
                    .grants
                    .push((home.join(".sdkman/candidates"), Access::ReadExecute, name));
                presets.overlays.push(home.join(".m2/repository"));
            }
            Toolchain::Git => {
                for path in [
                    ".gitconfig",
                    ".config/git/config",
                    ".config/git/ignore",
                    ".config/git/attributes",
                ] {
                    read(home.join(path));
                }
            }
        }
    }
    presets
}
