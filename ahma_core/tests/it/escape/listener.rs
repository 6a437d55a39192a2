//! A command asks the listener in front of its own server, which asks for no credential, and has to be refused; a
//! client beside it is served meanwhile.

use std::{fs, path::Path};

use rustix::process::Signal;
use serde_json::json;
use test_support::{Era, Roots, wait_for};

use super::{
    Net,
    caller::Way,
    can_be_nobody,
    world::{Confinement, User, World},
};

/// Ways to hide who asks.
const TRICKS: [&str; 7] = [
    "none",
    "orphan",
    "multipath",
    "another address",
    "in a message",
    "in a call",
    "closed",
];

#[test]
fn no_command_uses_its_own_listener_from_the_full_tier() {
    steals(Confinement::Full, User::Current);
    knocks(Confinement::Full, User::Current, Way::Shared);
}

#[test]
fn no_command_uses_its_own_listener_from_the_core_tier() {
    steals(Confinement::Core, User::Current);
    knocks(Confinement::Core, User::Current, Way::Isolated);
}

#[test]
fn no_command_of_an_ordinary_user_uses_its_own_listener_from_the_full_tier() {
    if can_be_nobody() {
        steals(Confinement::Full, User::Nobody);
        knocks(Confinement::Full, User::Nobody, Way::Isolated);
    }
}

#[test]
fn no_command_of_an_ordinary_user_uses_its_own_listener_from_the_core_tier() {
    if can_be_nobody() {
        steals(Confinement::Core, User::Nobody);
        knocks(Confinement::Core, User::Nobody, Way::Shared);
    }
}

/// The whole way: a session in a directory that is not the command's, and a file there.
fn steals(confinement: Confinement, user: User) {
    let mut world = World::new(confinement, user, Way::Isolated);
    let target = world.outside("wanted");
    let address = world.front().address().to_owned();
    let said = steal(&mut world, &address, &target);
    assert!(
        !target.join("stolen").exists(),
        "{confinement:?} {user:?}: {said}"
    );
    assert!(
        said.contains("403") && said.contains("comes from a command") && said.contains("--auth token"),
        "{confinement:?} {user:?}: {said}"
    );
}

/// Answer to the command that asks for the file.
fn steal(world: &mut World, address: &str, target: &Path) -> String {
    let scope = world.scope();
    fs::write(scope.join("steal.py"), include_str!("steal.py")).unwrap();
    let (host, port) = address.split_once(':').unwrap();
    let script = format!("python3 steal.py {host} {port} {}", target.display());
    world.call(Net::Open, &scope, &script)
}

/// A command of one server asks the listener of another, of the same user.
#[test]
fn no_command_uses_the_listener_of_another_server() {
    for confinement in [Confinement::Full, Confinement::Core] {
        let mut listening = World::new(confinement, User::Current, Way::Isolated);
        let target = listening.outside("wanted");
        let address = listening.front().address().to_owned();
        let mut other = World::new(confinement, User::Current, Way::Stdio);
        let said = steal(&mut other, &address, &target);
        assert!(!target.join("stolen").exists(), "{confinement:?}: {said}");
        assert!(said.contains("comes from a command"), "{confinement:?}: {said}");
    }
}

/// without a sandbox only the listener itself is above the command, which is enough.
#[test]
fn no_command_uses_its_own_listener_even_without_a_sandbox() {
    steals(Confinement::None, User::Current);
}

/// Programs that the same user runs outside of the server are served, for root and an ordinary user.
#[test]
fn what_runs_beside_the_server_is_served() {
    for user in [User::Current, User::Nobody] {
        if user == User::Nobody && !can_be_nobody() {
            continue;
        }
        let mut world = World::new(Confinement::Full, user, Way::Isolated);
        let target = world.outside("wanted");
        let place = world.outside("place");
        fs::write(place.join("steal.py"), include_str!("steal.py")).unwrap();
        let (host, port) = world.front().address().split_once(':').unwrap();
        let script = format!(
            "cd {} && python3 steal.py {host} {port} {}",
            place.display(),
            target.display()
        );
        world.as_user(&script, &[]);
        assert!(target.join("stolen").exists(), "{user:?}");
    }
}

/// Every trick in both eras. The listener is stopped until the trick is done, so that it is never lucky.
fn knocks(confinement: Confinement, user: User, way: Way) {
    let mut world = World::new(confinement, user, way);
    let scope = world.scope();
    fs::write(scope.join("knock.py"), include_str!("knock.py")).unwrap();
    let address = world.front().address().to_owned();
    let (host, port) = address.split_once(':').unwrap();
    for trick in TRICKS {
        for era in ["legacy", "modern"] {
            let what = format!("{confinement:?} {user:?} {way:?}, trick {trick}, {era}");
            for file in ["begin", "ready", "go", "answer"] {
                let _ = fs::remove_file(scope.join(file));
            }
            let script = format!("python3 knock.py {host} {port} '{trick}' {era}");
            let operation = world.caller(Net::Open, &scope).start(&script);
            let refused = refusals(&mut world);
            world.front().process().signal(Signal::STOP);
            fs::write(scope.join("begin"), "").unwrap();
            wait_for(&format!("the question: {what}"), || {
                scope.join("ready").exists().then_some(())
            });
            world.front().process().signal(Signal::CONT);
            wait_for(&format!("the refusal: {what}"), || {
                (refusals(&mut world) > refused).then_some(())
            });
            // Others come and go as before.
            world.front().session(Roots::None).call("tools/list", json!({}));
            world.front().sessionless().open(Era::Modern);
            fs::write(scope.join("go"), "").unwrap();
            let arguments = json!({"operation_ids": [operation], "timeout_seconds": 50});
            let ended = world.caller(Net::Open, &scope).tool("await", arguments);
            let answer =
                fs::read_to_string(scope.join("answer")).unwrap_or_else(|_| panic!("{what}: {ended}"));
            let expected = if trick == "closed" {
                "nothing"
            } else {
                " 403 Forbidden"
            };
            assert!(answer.contains(expected), "{what}: {answer}");
        }
    }
}

/// Number of refused connections that the listener reported.
fn refusals(world: &mut World) -> usize {
    world
        .front()
        .process()
        .complaints()
        .matches("a connection is refused")
        .count()
}
