//! Build tools, with projects made for them.

use std::path::Path;

use serde_json::json;
use test_support::{needs, skip};

use super::Project;

const CARGO: &str = "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";

const CARGO_LIB: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    return a + b + 1;\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(super::add(1, 2), 3);\n    }\n\n    #[test]\n    fn subtracts() {}\n}\n";

#[test]
fn cargo_names_what_fails() {
    if !needs("cargo", &["clippy", "--version"], "install Rust with rustup") {
        return;
    }
    let mut project = Project::new(
        &["cargo.json"],
        &[("Cargo.toml", CARGO), ("src/lib.rs", CARGO_LIB)],
    );
    let answer = project.finds("cargo_test", json!({"offline": true}));
    insta::assert_snapshot!(answer, @r#"
    exit 101 after [time] · [id]
    findings: 1 high
    - high tests::adds: assertion `left == right` failed left: 4 right: 3 (src/lib.rs:9:9)
    test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in [time]
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    let answer = project.finds("cargo_clippy", json!({"offline": true}));
    insta::assert_snapshot!(answer, @r"
    findings: 1 low
    - low needless_return: unneeded `return` statement (src/lib.rs:2:5)
    ");
    let good = CARGO_LIB.replace("return a + b + 1;", "a + b");
    project.write("src/lib.rs", &good);
    let answer = project.succeeds("cargo_test", json!({"offline": true}));
    insta::assert_snapshot!(answer, @"test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in [time]");
    let answer = project.succeeds("cargo_clippy", json!({"offline": true}));
    insta::assert_snapshot!(answer, @"completed after [time] · [id]");
    project.write("src/lib.rs", &good.replace("-> i32", "-> u8"));
    let answer = project.finds("cargo_build", json!({"offline": true}));
    insta::assert_snapshot!(answer, @r#"
    exit 101 after [time] · [id]
    findings: 1 high
    - high E0308: mismatched types (src/lib.rs:2:5)
      |
    1 | pub fn add(a: i32, b: i32) -> u8 {
      |                               -- expected `u8` because of return type
    2 |     a + b
      |     ^^^^^ expected `u8`, found `i32`
      |
    help: you can convert an `i32` to a `u8` and panic if the converted value doesn't fit
      |
    2 |     (a + b).try_into().unwrap()
      |     +     +++++++++++++++++++++
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
}

const GO_TEST: &str = "package sums\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Errorf(\"Add(1, 2) = %d, want 3\", got)\n\t}\n}\n";

#[test]
fn go_names_what_fails() {
    if !needs("go", &["version"], "apt install golang-go") {
        return;
    }
    let wrong = "package sums\n\nfunc Add(a, b int) int { return a + b + 1 }\n";
    let mut project = Project::new(
        &["go.json"],
        &[
            ("go.mod", "module example.com/sums\n\ngo 1.19\n"),
            ("sums.go", wrong),
            ("sums_test.go", GO_TEST),
        ],
    );
    let packages = json!({"packages": ["./..."]});
    let answer = project.finds("go_test", packages.clone());
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 1 high
    - high TestAdd: Add(1, 2) = 4, want 3 (sums_test.go:7)
    FAIL	example.com/sums	[time]
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    let answer = project.finds("go_test", json!({"packages": ["./..."], "verbose": true}));
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 1 high
    - high TestAdd: Add(1, 2) = 4, want 3 (sums_test.go:7)
    FAIL	example.com/sums	[time]
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    project.write("sums.go", &wrong.replace(" + 1", ""));
    let answer = project.succeeds("go_test", packages.clone());
    insta::assert_snapshot!(answer, @"ok  	example.com/sums	[time]");
    let answer = project.succeeds("go_build", packages.clone());
    insta::assert_snapshot!(answer, @"(no output)");
    project.write("bad.go", "package sums\n\nfunc bad() int { return \"a\" }\n");
    let answer = project.finds("go_build", packages);
    insta::assert_snapshot!(answer, @r#"
    exit 2 after [time] · [id]
    findings: 1 high
    - high go: cannot use "a" (untyped string constant) as int value in return statement (bad.go:3:25)
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
}

const CMAKE: &str = "cmake_minimum_required(VERSION 3.10)\nproject(sums CXX)\nenable_testing()\nadd_executable(sums sums.cpp)\nadd_test(NAME adds COMMAND sums)\n";

#[test]
fn cmake_names_what_fails() {
    if !needs("cmake", &["--version"], "apt install cmake g++")
        || !needs("ninja", &["--version"], "apt install ninja-build")
    {
        return;
    }
    let mut project = Project::new(
        &["cmake.json", "cmake_build.json", "ctest.json"],
        &[
            ("CMakeLists.txt", CMAKE),
            ("sums.cpp", "int main() { return \"a\"; }\n"),
        ],
    );
    let answer = project.succeeds("cmake", json!({"generator": "Ninja"}));
    insta::assert_snapshot!(answer, @"Build files have been written to: [scope]/build");
    let answer = project.finds("cmake_build", json!({}));
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 1 high
    - high fpermissive: invalid conversion from 'const char*' to 'int' (sums.cpp:1:21)
        1 | int main() { return "a"; }
          |                     ^~~
          |                     |
          |                     const char*
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    project.write(
        "sums.cpp",
        "#include <cstdio>\nint main() { std::puts(\"4, want 3\"); return 1; }\n",
    );
    let answer = project.succeeds("cmake_build", json!({}));
    insta::assert_snapshot!(answer, @"completed after [time] · [id]");
    let answer = project.finds("ctest", json!({}));
    insta::assert_snapshot!(answer, @r#"
    exit 8 after [time] · [id]
    findings: 1 high
    - high adds: 4, want 3
    0% tests passed, 1 tests failed out of 1
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    project.write("sums.cpp", "int main() { return 0; }\n");
    project.succeeds("cmake_build", json!({}));
    let answer = project.succeeds("ctest", json!({}));
    insta::assert_snapshot!(answer, @"100% tests passed, 0 tests failed out of 1");
    project.write("CMakeLists.txt", &CMAKE.replace("sums.cpp", "gone.cpp"));
    let answer = project.finds("cmake", json!({"generator": "Ninja"}));
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 2 high
    - high cmake: Cannot find source file: gone.cpp Tried extensions .c .C .c++ .cc .cpp .cxx .cu .mpp .m .M .mm .ixx .cppm .h .hh .h++ .hm .hpp .hxx .in .txx .f .F .for .f77 .f90 .f95 .f03 .hip .ispc (CMakeLists.txt:4)
    - high cmake: No SOURCES given to target: sums (CMakeLists.txt:4)
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
}

/// Debian's own repository has what Maven needs for this, so that nothing is downloaded.
const MAVEN_REPOSITORY: &str = "/usr/share/maven-repo";

const POM: &str = r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId>
  <artifactId>sums</artifactId>
  <version>1.0</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency>
  </dependencies>
</project>
"#;

const JAVA: &str = "package org.example;\n\nclass Sums {\n    static int add(int a, int b) {\n        return a + b + 1;\n    }\n}\n";

const JAVA_TEST: &str = "package org.example;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\npublic class SumsTest {\n    @Test\n    public void adds() {\n        assertEquals(3, Sums.add(1, 2));\n    }\n}\n";

#[test]
fn maven_names_what_fails() {
    let install =
        "apt install maven libmaven-compiler-plugin-java libmaven-resources-plugin-java libsurefire-java";
    if !needs("mvn", &["--version"], install) {
        return;
    }
    let plugins = Path::new(MAVEN_REPOSITORY).join("org/apache/maven/plugins");
    let has = |plugin: &str| plugins.join(plugin).is_dir();
    if ![
        "maven-compiler-plugin",
        "maven-resources-plugin",
        "maven-surefire-plugin",
    ]
    .iter()
    .all(|plugin| has(plugin))
    {
        skip(install);
        return;
    }
    let source = "src/main/java/org/example/Sums.java";
    let mut project = Project::new(
        &["mvn.json"],
        &[
            ("pom.xml", POM),
            (source, JAVA),
            ("src/test/java/org/example/SumsTest.java", JAVA_TEST),
        ],
    );
    let test = json!({"goals": ["test"], "offline": true, "define": [format!("maven.repo.local={MAVEN_REPOSITORY}")]});
    let answer = project.finds("mvn", test.clone());
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 1 high
    - high SumsTest.adds: expected:<3> but was:<4> (SumsTest.java:10)
    java.lang.AssertionError: expected:<3> but was:<4>
    Tests run: 1, Failures: 1, Errors: 0, Skipped: 0
    BUILD FAILURE
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    project.write(source, &JAVA.replace("a + b + 1", "\"a\""));
    let answer = project.finds("mvn", test.clone());
    insta::assert_snapshot!(answer, @r#"
    exit 1 after [time] · [id]
    findings: 1 high
    - high compile: incompatible types: java.lang.String cannot be converted to int (src/main/java/org/example/Sums.java:5:16)
    BUILD FAILURE
    [[number] lines in all: output {"operation_id": "[id]"}]
    "#);
    project.write(source, &JAVA.replace(" + 1", ""));
    let answer = project.succeeds("mvn", test);
    insta::assert_snapshot!(answer, @r"
    Tests run: 1, Failures: 0, Errors: 0, Skipped: 0
    BUILD SUCCESS
    ");
}
