use clap::Arg;

use super::*;

fn command() -> Command {
    let file = Arg::new("tokens_file")
        .long("tokens-file")
        .env("AHMA_HTTP_TOKENS_FILE");
    let wait = Arg::new("sync_wait").long("sync-wait").env("AHMA_SYNC_WAIT");
    let sub = Arg::new("file").long("file").env("AHMA_HTTP_TOKENS_FILE");
    Command::new("program")
        .args([file, wait])
        .subcommand(Command::new("token").arg(sub))
}

#[test]
fn the_regular_name_counts_where_the_other_is_not_set() {
    for (set, expected) in [
        (&[][..], "AHMA_HTTP_TOKENS_FILE"),
        (&["AHMA_TOKENS_FILE"], "AHMA_TOKENS_FILE"),
        (
            &["AHMA_TOKENS_FILE", "AHMA_HTTP_TOKENS_FILE"],
            "AHMA_HTTP_TOKENS_FILE",
        ),
    ] {
        let command = with_names_set(command(), |name| set.contains(&name));
        let of = |command: &Command, id: &str| {
            let arg = command.get_arguments().find(|arg| arg.get_id() == id).unwrap();
            arg.get_env().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(of(&command, "tokens_file"), expected);
        assert_eq!(of(command.find_subcommand("token").unwrap(), "file"), expected);
        assert_eq!(of(&command, "sync_wait"), "AHMA_SYNC_WAIT");
    }
}

#[test]
fn both_names_are_known() {
    let mut names = names(&command());
    names.sort();
    names.dedup();
    assert_eq!(
        names,
        ["AHMA_HTTP_TOKENS_FILE", "AHMA_SYNC_WAIT", "AHMA_TOKENS_FILE"]
    );
}

#[test]
fn an_empty_no_color_refuses_nothing() {
    for (value, refuses) in [
        (None, false),
        (Some(""), false),
        (Some("0"), true),
        (Some("1"), true),
    ] {
        assert_eq!(refuses_colour(value.map(OsStr::new)), refuses, "{value:?}");
    }
}
