use clap::CommandFactory as _;

use super::*;
use crate::app::args::Args;

#[test]
fn a_variable_under_a_wrong_name_is_told_with_the_right_one() {
    let known = variables::names(&Args::command());
    let set = [
        "AHMA_SYNC_WAIT",
        "AHMA_SYNCWAIT",
        "AHMA_ZZZ",
        "PATH",
        "AHMA_SERVER",
    ];
    let ignored = IgnoredInputs {
        idle_flags: Vec::new(),
        unknown_variables: unknown(set.iter().map(|name| (*name).to_owned()), &known),
    };
    assert_eq!(
        ignored.warnings(),
        [
            "AHMA_SYNCWAIT is not known; did you mean AHMA_SYNC_WAIT?",
            "AHMA_ZZZ is not known"
        ]
    );
    assert!(ignored.refuse_open_server().is_ok());
}

#[test]
fn a_credential_under_a_wrong_name_opens_nothing() {
    let known = variables::names(&Args::command());
    for name in [
        "AHMA_HTTP_TOKEN_FILE",
        "AHMA_TOKENSFILE",
        "AHMA_TOKNES_FILE",
        "AHMA_HTTP_TOKNE",
        "AHMA_HTTP_AUTH",
    ] {
        let ignored = IgnoredInputs {
            idle_flags: Vec::new(),
            unknown_variables: unknown(std::iter::once(name.to_owned()), &known),
        };
        assert!(ignored.refuse_open_server().is_err(), "{name}");
    }
}

#[test]
fn of_two_names_that_hold_the_wrong_one_the_nearer_is_suggested() {
    let known = variables::names(&Args::command());
    let found = unknown(std::iter::once("AHMA_TOKEN".to_owned()), &known);
    assert_eq!(found[0].nearest.as_deref(), Some("AHMA_HTTP_TOKEN"));
}

/// The text of `--help` for every flag.
#[test]
fn every_flag_has_the_variable_that_the_rule_says() {
    let names = variables::names(&Args::command());
    let command = Args::command();
    let flags = command.get_arguments().filter(|arg| arg.get_env().is_some());
    for long in flags.filter_map(|arg| arg.get_long()) {
        let regular = format!("AHMA_{}", long.to_uppercase().replace('-', "_"));
        assert!(names.contains(&regular), "--{long} has no {regular}");
    }
}
