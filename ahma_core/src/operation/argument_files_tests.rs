use super::*;

fn command(program: Program, files: Vec<ArgumentFile>) -> Command {
    Command {
        files,
        ..Command::new(program)
    }
}

#[tokio::test]
async fn files_stand_in_for_their_arguments_and_go_away() {
    let temp = tempfile::tempdir().unwrap();
    let words = ["git", "commit", "-F", "placeholder"].map(str::to_owned).to_vec();
    let file = ArgumentFile {
        index: 3,
        contents: "it's\na message".into(),
    };
    let command = command(Program::Argv(words), vec![file]);

    let (files, program) = ArgumentFiles::write(&command, temp.path().to_owned(), "/seen".into())
        .await
        .unwrap();
    let Program::Argv(words) = program else {
        panic!("{program:?}")
    };
    let name = words[3].strip_prefix("/seen/").unwrap();
    assert_eq!(words[..3], ["git", "commit", "-F"]);
    assert_eq!(
        fs::read_to_string(temp.path().join(name)).unwrap(),
        "it's\na message"
    );

    drop(files);
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_directory_that_is_gone_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let file = ArgumentFile {
        index: 0,
        contents: String::new(),
    };
    let command = command(Program::Argv(vec!["x".into()]), vec![file]);
    let written = ArgumentFiles::write(&command, temp.path().join("gone"), "/seen".into()).await;
    assert!(written.is_err());
}
