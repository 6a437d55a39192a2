//! Build tools, with projects made for them.

use serde_json::json;
use test_support::needs;

use super::Project;

const GO_TEST: &str = "package sums\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Errorf(\"Add(1, 2) = %d, want 3\", got)\n\t}\n}\n";

#[test]
fn go_names_what_fails() {
    if !needs("go", &["version"], "apt install golang-go") {
        return;
    }
    let mut project = Project::new(
        &["go.json"],
        &[
            ("go.mod", "module example.com/sums\n\ngo 1.19\n"),
            (
                "sums.go",
                "package sums\n\nfunc Add(a, b int) int { return a + b + 1 }\n",
            ),
            ("sums_test.go", GO_TEST),
        ],
    );
    let packages = json!({"packages": ["./..."]});
    let answer = project.finds("go_test", packages.clone());
    assert_eq!(
        answer.findings(),
        ["high TestAdd sums_test.go:7"],
        "{}",
        answer.text
    );
    assert!(answer.text.contains("Add(1, 2) = 4, want 3"), "{}", answer.text);
    project.write(
        "sums.go",
        "package sums\n\nfunc Add(a, b int) int { return a + b }\n",
    );
    project.succeeds("go_test", packages.clone());
    project.succeeds("go_build", packages.clone());
    project.write("bad.go", "package sums\n\nfunc bad() int { return \"a\" }\n");
    let answer = project.finds("go_build", packages);
    assert_eq!(answer.findings(), ["high go bad.go:3:25"], "{}", answer.text);
}

#[test]
fn cmake_names_what_fails() {
    if !needs("cmake", &["--version"], "apt install cmake g++")
        || !needs("ninja", &["--version"], "apt install ninja-build")
    {
        return;
    }
    let lists = "cmake_minimum_required(VERSION 3.10)\nproject(sums CXX)\nenable_testing()\nadd_executable(sums sums.cpp)\nadd_test(NAME adds COMMAND sums)\n";
    let mut project = Project::new(
        &["cmake.json", "cmake_build.json", "ctest.json"],
        &[
            ("CMakeLists.txt", lists),
            ("sums.cpp", "int main() { return \"a\"; }\n"),
        ],
    );
    let answer = project.call("cmake", json!({"generator": "Ninja"}));
    assert_eq!(answer.data["status"], "completed", "{}", answer.text);
    let answer = project.finds("cmake_build", json!({}));
    assert_eq!(answer.data["findings"][0]["severity"], "high", "{}", answer.text);
    assert!(
        answer.text.contains("invalid conversion") && answer.text.contains("sums.cpp:1:21"),
        "{}",
        answer.text
    );
    project.write(
        "sums.cpp",
        "#include <cstdio>\nint main() { std::puts(\"4, want 3\"); return 1; }\n",
    );
    project.succeeds("cmake_build", json!({}));
    let answer = project.finds("ctest", json!({}));
    assert_eq!(answer.ids(), ["adds"], "{}", answer.text);
    project.write("sums.cpp", "int main() { return 0; }\n");
    project.succeeds("cmake_build", json!({}));
    project.succeeds("ctest", json!({}));
}
