//! Programs that no registry of the tests has, or that are too big for them: recordings of them, printed by a stand-in.
//!
//! Those of docker, nuclei, trivy, gitleaks, golangci-lint, helm and nikto 2.5 were written after their documentation.

use std::{fmt::Write as _, fs, os::unix::fs::PermissionsExt as _};

use ahma_core::observe::{self, StreamEvent};
use serde_json::Value;
use test_support::{Workspace, pack_file};

use super::{MAX_FAILURE_BYTES, MAX_SUCCESS_BYTES, Project, serving};
use crate::{
    replayed::{pieces, script},
    streams::{block, compile, fixture, shipped},
};

/// Stands in recordings for the directory of the project.
const PROJECT: &str = "/home/me/project";

/// Tool file, tool, recording, and the arguments without which the tool cannot be called.
const RECORDINGS: &str = r#"
cargo.json cargo_nextest_run cargo_nextest.txt {}
eslint.json eslint eslint.txt {}
tsc.json tsc tsc.txt {}
vitest.json vitest vitest.txt {}
npm.json npm_test jest.txt {}
npm.json npm_test node_test_spec.txt {}
pnpm.json pnpm_install pnpm_install.txt {}
pnpm.json pnpm_install pnpm_missing.txt {}
uv.json uv_add uv_add.txt {"packages": ["iniconfig"]}
uv.json uv_add uv_bad.txt {"packages": ["no-such-package"]}
gradle.json gradle gradle_test.txt {"tasks": ["test"]}
gradle.json gradle gradle_compile.txt {"tasks": ["test"]}
gradle.json gradle gradle_success.txt {"tasks": ["test"]}
docker.json docker_build docker_build.txt {"context": "."}
docker.json docker_build docker_build_bad.txt {"context": "."}
buildah.json buildah_build buildah.txt {"context": "."}
buildah.json buildah_build buildah_bad.txt {"context": "."}
clang_tidy.json clang-tidy clang_tidy.txt {"files": ["a.cpp"]}
golangci_lint.json golangci-lint golangci_lint.txt {}
nikto.json nikto nikto_2.5.txt {"host": "http://shop.example"}
nuclei.json nuclei nuclei.txt {"target": ["http://shop.example"]}
trivy.json trivy_fs trivy_fs.txt {"path": "."}
gitleaks.json gitleaks_dir gitleaks.txt {}
gitleaks.json gitleaks_dir gitleaks_clean.txt {}
kubectl.json kubectl_rollout_status kubectl_rollout.txt {"resource": "deploy/web"}
kubectl.json kubectl_rollout_status kubectl_missing.txt {"resource": "deploy/missing"}
helm.json helm_lint helm_lint.txt {}
testssl.json testssl testssl.txt {"target": "127.0.0.1:8443"}
masscan.json masscan masscan.txt {"targets": ["192.0.2.1"], "ports": "1-300"}
"#;

#[test]
fn recordings_read_like_the_programs() {
    let mut all = String::new();
    for row in RECORDINGS.trim().lines() {
        let [file, tool, recording, arguments] = row.splitn(4, ' ').collect::<Vec<_>>().try_into().unwrap();
        let workspace = Workspace::new();
        let exit_code = stand_in(file, recording, &workspace);
        let mut project = Project {
            server: serving(&workspace),
            workspace,
        };
        let answer = project.call(tool, serde_json::from_str(arguments).unwrap());
        let most = if exit_code == 0 && answer.findings().is_empty() {
            MAX_SUCCESS_BYTES
        } else {
            MAX_FAILURE_BYTES
        };
        assert!(answer.text.len() <= most, "{recording}: {}", answer.text);
        writeln!(
            all,
            "== {tool}: {recording}\n{}\n",
            in_fixed_order(&answer.to_string())
        )
        .unwrap();
    }
    insta::assert_snapshot!(all);
}

/// The streams are read apart, so that findings of the same severity may come in either order.
fn in_fixed_order(text: &str) -> String {
    fn severity(line: &str) -> Option<&str> {
        line.strip_prefix("- ")?.split(' ').next()
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines
        .chunk_by_mut(|one, next| severity(one).is_some() && severity(one) == severity(next))
        .for_each(<[&str]>::sort_unstable);
    lines.join("\n")
}

/// Makes a program that prints the recording, and the tool of the file run it. Returns its exit code.
fn stand_in(file: &str, recording: &str, workspace: &Workspace) -> i32 {
    let text = fixture(recording).replace(PROJECT, &workspace.scope().display().to_string());
    let (_, end) = text.rsplit_once("# exit ").unwrap();
    let code = end.split(' ').next().unwrap().parse().unwrap();
    let mut tool: Value = serde_json::from_str(&fs::read_to_string(pack_file(file)).unwrap()).unwrap();
    let mut recorded = pieces(&text, tool.to_string().contains("\"json-"));
    recorded.iter_mut().for_each(|piece| piece.at = 0.0);
    let pieces = script("pieces", &recorded, workspace);
    // The tool of gradle finds it by this name; the others are told where it is.
    let program = workspace.scope().join("gradlew");
    fs::write(&program, format!("#!/bin/sh\n{pieces}exit {code}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let command = tool["command"].as_str().unwrap();
    if !command.starts_with("sh -c") {
        let (_, rest) = command.split_once(' ').unwrap_or_default();
        tool["command"] = format!("{} {rest}", program.display()).trim_end().into();
    }
    tool.as_object_mut().unwrap().remove("availability_check");
    workspace.write_tool(file, &tool);
    code
}

/// Tool files, where in them the rules are, and recordings of their programs with percentages.
const WITH_PERCENT: [(&str, &[&str], &str); 15] = [
    ("docker.json", &["build"], "docker_build.txt"),
    ("buildah.json", &["build"], "buildah.txt"),
    ("cargo.json", &["build"], "cargo_progress_forced.txt"),
    ("ctest.json", &[], "ctest.txt"),
    ("curl_download.json", &[], "curl_bar.txt"),
    ("ffuf.json", &[], "ffuf.txt"),
    ("git.json", &["clone"], "git_clone.txt"),
    ("gobuster.json", &[], "gobuster.txt"),
    ("kubectl.json", &["rollout", "status"], "kubectl_rollout.txt"),
    ("masscan.json", &[], "masscan.txt"),
    ("nikto.json", &[], "nikto.txt"),
    ("nmap.json", &[], "nmap_progress.txt"),
    ("nuclei.json", &[], "nuclei.txt"),
    ("pnpm.json", &["install"], "pnpm_install.txt"),
    ("testssl.json", &[], "testssl.txt"),
];

#[test]
fn no_bar_stands_at_its_end_while_work_goes_on() {
    for (file, subcommands, recording) in WITH_PERCENT {
        let text = fixture(recording);
        let time_of = |line: usize| {
            let line = text.lines().nth(line - 1).unwrap();
            line[1..].split(' ').next().unwrap().parse::<f64>().unwrap()
        };
        let mut last = 0.0_f64;
        let (mut most, mut full_since) = (0.0_f64, None);
        let rules = compile(&block(shipped(file, subcommands)));
        for line in observe::replay(&rules, &text) {
            last = time_of(line.line_no);
            for event in line.events {
                let StreamEvent::Progress(progress) = event else {
                    continue;
                };
                most = most.max(progress.percent.unwrap_or(0.0));
                if most > 99.0 {
                    full_since.get_or_insert(last);
                }
            }
        }
        assert!(most > 0.0, "{recording} has no percentage");
        assert!(
            last - full_since.unwrap_or(last) <= 1.0,
            "{recording}: full since {full_since:?}, end {last}"
        );
    }
}
