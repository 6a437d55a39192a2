use std::{fs, os::unix::fs::PermissionsExt as _};

use tempfile::TempDir;

use super::*;

/// A scope with a directory of programs in it, and one beside it.
struct Machine {
    root: TempDir,
}

impl Machine {
    fn new(programs: &[&str]) -> Self {
        let machine = Self {
            root: tempfile::tempdir().expect("a temporary directory"),
        };
        for directory in ["scope/bin", "shared/bin", "outside/bin"] {
            fs::create_dir_all(machine.at(directory)).expect("writable");
        }
        for program in programs {
            let file = machine.at(program);
            fs::write(&file, "").expect("writable");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().expect("it exists").join(path)
    }

    fn around(&self) -> Surroundings {
        let path = [
            PathBuf::from("bin"),
            self.at("scope/bin"),
            self.at("shared/bin"),
            self.at("missing"),
            self.at("outside/bin"),
        ];
        Surroundings {
            scope: self.at("scope"),
            writable: vec![self.at("scope"), self.at("shared")],
            path: std::env::join_paths(path).expect("no colons"),
            this_program: Some(self.at("outside/bin/ourselves")),
        }
    }
}

fn command(program: &str, args: &[&str]) -> StdioCommand {
    StdioCommand {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Default::default(),
        working_directory: None,
    }
}

#[test]
fn nothing_that_commands_can_write_decides_what_runs_outside() {
    let machine = Machine::new(&[
        "scope/bin/npx",
        "shared/bin/npx",
        "outside/bin/npx",
        "scope/bin/only_here",
        "shared/bin/only_there",
    ]);
    let mut npx = command("npx", &["-y", "some-server"]);
    assert_eq!(prepare(&mut npx, &machine.around()), Prepared::Ready);
    assert_eq!(
        npx.program,
        machine.at("outside/bin/npx").to_str().expect("plain")
    );
    assert_eq!(
        npx.env["PATH"],
        machine.at("outside/bin").to_str().expect("plain")
    );
    assert_eq!(npx.env["AHMA_NO_MCP_CONFIG"], "1");
    assert_eq!(npx.working_directory, Some("/".into()));

    for name in ["only_here", "only_there"] {
        let missing = prepare(&mut command(name, &[]), &machine.around());
        assert!(matches!(missing, Prepared::NotFound(_)), "{missing:?}");
    }
}

#[test]
fn what_the_user_wrote_down_stays() {
    let machine = Machine::new(&["outside/bin/server"]);
    let mut server = command("server", &[]);
    server.env.insert("PATH".to_owned(), "/mine".to_owned());
    server.working_directory = Some("/srv".into());
    assert_eq!(prepare(&mut server, &machine.around()), Prepared::Ready);
    assert_eq!(server.env["PATH"], "/mine");
    assert_eq!(server.working_directory, Some("/srv".into()));
}

#[test]
fn a_program_that_commands_can_change_is_named() {
    let machine = Machine::new(&[
        "scope/server.sh",
        "outside/bin/node",
        "scope/server.js",
        "shared/bin/server.js",
    ]);
    let shared = machine.at("shared/bin/server.js");
    let shared = shared.to_str().expect("plain");
    let script = machine.at("scope/server.js");
    let script = script.to_str().expect("plain");
    for mut command in [
        command("./server.sh", &[]),
        command("node", &[script]),
        command("node", &["--flag", script]),
        command("node", &[shared]),
        command(shared, &[]),
    ] {
        let doubt = prepare(&mut command, &machine.around());
        assert!(
            matches!(&doubt, Prepared::Doubtful(doubt) if doubt.contains("commands in the sandbox can change")),
            "{doubt:?}"
        );
    }
}

#[test]
fn this_program_is_recognised_under_another_name() {
    let machine = Machine::new(&["outside/bin/ourselves"]);
    std::os::unix::fs::symlink(
        machine.at("outside/bin/ourselves"),
        machine.at("outside/bin/other"),
    )
    .expect("writable");
    assert_eq!(
        prepare(&mut command("other", &[]), &machine.around()),
        Prepared::Ourselves
    );
}
