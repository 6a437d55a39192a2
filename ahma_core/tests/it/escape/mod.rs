//! Attempts to get out, made through the real server and judged from outside: did a secret come out, did a file change,
//! did somebody knock, was a process touched. The same attempts without a wall must get out, or they prove nothing.

mod attempt;
mod caller;
mod exchange;
mod files;
mod kernel;
mod later;
mod listener;
mod network;
mod outside;
mod picture;
mod processes;
mod world;

use attempt::{Attempt, Needs, Net, Unwalled};
use caller::Way;
use world::{Findings, User, Wall, World};

fn attempts() -> impl Iterator<Item = &'static Attempt> {
    [
        files::FILES,
        processes::PROCESSES,
        kernel::KERNEL,
        network::NETWORK,
        later::LATER,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn nothing_gets_out_of_the_full_tier() {
    contains(Wall::Full, User::Current, Way::Stdio);
}

#[test]
fn nothing_gets_out_of_the_core_tier() {
    contains(Wall::Core, User::Current, Way::Stdio);
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_full_tier() {
    if can_be_nobody() {
        contains(Wall::Full, User::Nobody, Way::Stdio);
    }
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_core_tier() {
    if can_be_nobody() {
        contains(Wall::Core, User::Nobody, Way::Stdio);
    }
}

// Over HTTP the same attempts; each tier, user and kind of session at least once.

#[test]
fn nothing_gets_out_of_the_full_tier_over_http() {
    contains(Wall::Full, User::Current, Way::Shared);
}

#[test]
fn nothing_gets_out_of_the_core_tier_over_http_with_isolation() {
    contains(Wall::Core, User::Current, Way::Isolated);
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_full_tier_over_http_with_isolation() {
    if can_be_nobody() {
        contains(Wall::Full, User::Nobody, Way::Isolated);
    }
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_core_tier_over_http() {
    if can_be_nobody() {
        contains(Wall::Core, User::Nobody, Way::Shared);
    }
}

#[test]
fn without_a_wall_the_attempts_get_out() {
    escapes(User::Current);
}

#[test]
fn without_a_wall_the_attempts_of_an_ordinary_user_get_out() {
    if can_be_nobody() {
        escapes(User::Nobody);
    }
}

fn contains(wall: Wall, user: User, way: Way) {
    let mut world = World::new(wall, user, way);
    let mut wrong = Vec::new();
    let mut made = 0;
    for attempt in attempts() {
        if !applies(attempt, user) || (wall == Wall::Core && attempt.network == Net::Loopback) {
            continue;
        }
        for _ in 0..if attempt.racy { rounds() } else { 1 } {
            made += 1;
            let findings = world.make(attempt);
            if !findings.escaped.is_empty() {
                wrong.push(complaint(attempt, &findings));
            }
        }
    }
    controls(&mut world, wall, &mut wrong);
    eprintln!(
        "{wall:?} {user:?} {way:?}: {made} attempts, {} not as expected",
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{wall:?} {user:?} {way:?}:\n{}",
        wrong.join("\n")
    );
    assert!(made >= 60, "only {made} attempts were made");
}

fn escapes(user: User) {
    let mut world = World::new(Wall::None, user, Way::Stdio);
    let mut wrong = Vec::new();
    let mut escaped = 0;
    for attempt in attempts() {
        if !applies(attempt, user) || attempt.unwalled == Unwalled::Harmful {
            continue;
        }
        let findings = world.make(attempt);
        escaped += usize::from(!findings.escaped.is_empty());
        let expected = match attempt.unwalled {
            Unwalled::Escapes => !findings.escaped.is_empty(),
            Unwalled::Contained => findings.escaped.is_empty(),
            Unwalled::Either | Unwalled::Harmful => true,
        };
        if !expected {
            wrong.push(complaint(attempt, &findings));
        }
    }
    eprintln!("no wall, {user:?}: {escaped} attempts got out");
    assert!(
        wrong.is_empty(),
        "without a wall, {user:?}:\n{}",
        wrong.join("\n")
    );
}

fn complaint(attempt: &Attempt, findings: &Findings) -> String {
    let output = findings.output.trim().replace('\n', "\n    ");
    format!("{}: {:?}\n    {output}", attempt.name, findings.escaped)
}

/// How often to try what luck decides.
fn rounds() -> usize {
    let asked = std::env::var("AHMA_TEST_ROUNDS").ok();
    asked.map_or(2, |count| count.parse().expect("AHMA_TEST_ROUNDS is a number"))
}

fn applies(attempt: &Attempt, user: User) -> bool {
    let is_root = user == User::Current && rustix::process::getuid().is_root();
    match attempt.needs {
        Needs::Anyone => true,
        Needs::Root => is_root,
        // The set-user-id program and its secret are made by root.
        Needs::OrdinaryUser => user == User::Nobody,
    }
}

fn can_be_nobody() -> bool {
    let can = rustix::process::getuid().is_root();
    if !can {
        eprintln!(
            "skipped: only root can start a server as another user; the other tests ran as an ordinary one"
        );
    }
    can
}

/// What must work: a wall in which nothing runs contains everything.
fn controls(world: &mut World, wall: Wall, wrong: &mut Vec<String>) {
    let scope = world.scope();
    let mut controls = vec![
        (Net::Open, "write and read", "echo x > control && cat control && rm control".to_owned(), "x"),
        (Net::Open, "temporary files", "f=$(mktemp) && echo x > $f && cat $f && rm $f".into(), "x"),
        (Net::Open, "the null device", "echo gone > /dev/null && head -c 3 /dev/zero | wc -c".into(), "3"),
        (Net::Open, "links and hard links", "echo x > a; ln a b; ln -sf a c; cat b c | wc -l; rm a b c".into(), "2"),
        (Net::Open, "modes and times", "echo > m; chmod 750 m; touch -d 2001-01-01 m; stat -c '%a %Y' m; rm m".into(), "750 9783"),
        (Net::Open, "pipes and process substitution", "cat <(echo x) | tr x y".into(), "y"),
        (Net::Open, "own processes", "sleep 9 & kill %1; wait %1; echo $?".into(), "143"),
        (Net::Open, "facts about the machine", "grep -c . /proc/meminfo /proc/cpuinfo /proc/stat /proc/self/status | grep -vc ':0'".into(), "4"),
        (Net::Open, "threads", "python3 -c 'import threading; t=threading.Thread(target=print, args=(\"ran\",)); t.start(); t.join()'".into(), "ran"),
        (Net::Open, "pairs of sockets", "python3 -c 'import socket; a,b=socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'".into(), "b'x'"),
        (Net::Open, "a server of its own", "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\",0)); c=socket.create_connection(s.getsockname()); print(\"met\")'".into(), "met"),
        (Net::Open, "watching files", "python3 -c 'import ctypes,os; l=ctypes.CDLL(None); i=l.inotify_init(); l.inotify_add_watch(i, b\".\", 0x100); l.inotify_add_watch(i, b\"/usr\", 0x100); open(\"noticed\",\"w\"); print(os.read(i, 99)); os.unlink(\"noticed\")'".into(), "noticed"),
        (Net::Open, "git", "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m control && git log --oneline | wc -l && git branch control".into(), "1"),
        (Net::Off, "work without network", "echo $((6*7))".into(), "42"),
        (Net::Ports, "the port that is listed", format!("exec 3<>/dev/tcp/127.0.0.1/{}", world.allowed_port()), ""),
    ];
    if wall == Wall::Full {
        controls.extend([
            (Net::Open, "shared memory", "python3 -c 'from multiprocessing import Lock; Lock(); print(\"locked\")'".to_owned(), "locked"),
            (Net::Open, "own unix sockets", "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(); socket.socket(socket.AF_UNIX).connect(\"s\"); print(\"met\")'; rm s".to_owned(), "met"),
            (Net::Loopback, "an own loopback", "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\",0)); socket.create_connection(s.getsockname()); print(\"met\")'".to_owned(), "met"),
        ]);
    }
    for (network, name, script, expected) in controls {
        let output = world.call(network, &scope, &script);
        if !output.contains(expected) {
            wrong.push(format!("control {name}: {output}"));
        }
    }
    if !world.allowed_was_reached() {
        wrong.push("control: the listed port was not reached".to_owned());
    }
}

/// A command swaps a directory for a link, over and over, while the tripwire looks after other commands.
#[test]
fn the_tripwire_wins_every_race() {
    for wall in [Wall::Full, Wall::Core] {
        let mut world = World::new(wall, User::Current, Way::Stdio);
        for round in 0..rounds() {
            world.race(round);
        }
    }
}

/// Commands close directories behind what they leave in the private one.
#[test]
fn nothing_is_left_in_private_directories() {
    let user = if rustix::process::getuid().is_root() {
        User::Nobody
    } else {
        User::Current
    };
    for wall in [Wall::Full, Wall::Core] {
        let mut world = World::new(wall, user, Way::Stdio);
        let scope = world.scope();
        let left = "cd $TMPDIR; mkdir -p a/b c; touch a/b/f c/f; chmod 555 a/b c; chmod 0 a; ls -d a c";
        let output = world.call(Net::Open, &scope, left);
        assert!(output.contains("a\nc\n"), "{wall:?}: {output}");
        assert_eq!(world.leftovers(), Vec::<std::path::PathBuf>::new(), "{wall:?}");
    }
}
