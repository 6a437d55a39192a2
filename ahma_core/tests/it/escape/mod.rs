//! Attempts to get out, made through the real server and judged from outside: did a secret come out, did a file change,
//! was there a connection, was a process touched. The same attempts without a sandbox must get out, or they prove nothing.

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

use attempt::{Attempt, Needs, Net, Unconfined};
use caller::Way;
use world::{Confinement, Findings, User, World};

/// All attempts that say something about a confinement, or those of them of which `AHMA_TEST_ATTEMPTS` has the kind or the
/// name, separated by commas.
fn attempts(confinement: Confinement) -> impl Iterator<Item = &'static Attempt> {
    let asked = std::env::var("AHMA_TEST_ATTEMPTS").ok();
    let is_asked_for = move |kind: &str, attempt: &Attempt| {
        let Some(asked) = &asked else { return true };
        asked
            .split(',')
            .any(|asked| asked == kind || asked == attempt.name)
    };
    [
        ("files", files::FILES),
        ("processes", processes::PROCESSES),
        ("kernel", kernel::KERNEL),
        ("network", network::NETWORK),
        ("later", later::LATER),
    ]
    .into_iter()
    .flat_map(|(kind, attempts)| attempts.iter().map(move |attempt| (kind, attempt)))
    .filter(move |(kind, attempt)| is_asked_for(kind, attempt))
    // What macOS does with processes and its kernel is not known from a stand-in.
    .filter(move |(kind, attempt)| {
        confinement != Confinement::Seatbelt
            || !(attempt.only_linux || ["processes", "kernel"].contains(kind))
    })
    .map(|(_, attempt)| attempt)
}

#[test]
fn nothing_gets_out_of_the_full_tier() {
    contains(Confinement::Full, User::Current, Way::Stdio);
}

#[test]
fn nothing_gets_out_of_the_core_tier() {
    contains(Confinement::Core, User::Current, Way::Stdio);
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_full_tier() {
    if can_be_nobody() {
        contains(Confinement::Full, User::Nobody, Way::Stdio);
    }
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_core_tier() {
    if can_be_nobody() {
        contains(Confinement::Core, User::Nobody, Way::Stdio);
    }
}

// Over HTTP the same attempts; each tier, user and kind of session at least once.

#[test]
fn nothing_gets_out_of_the_full_tier_over_http() {
    contains(Confinement::Full, User::Current, Way::Shared);
}

#[test]
fn nothing_gets_out_of_the_core_tier_over_http_with_isolation() {
    contains(Confinement::Core, User::Current, Way::Isolated);
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_full_tier_over_http_with_isolation() {
    if can_be_nobody() {
        contains(Confinement::Full, User::Nobody, Way::Isolated);
    }
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_core_tier_over_http() {
    if can_be_nobody() {
        contains(Confinement::Core, User::Nobody, Way::Shared);
    }
}

#[test]
fn nothing_gets_out_of_the_read_only_sandbox_of_the_full_tier() {
    contains(Confinement::Full, User::Current, Way::ReadOnly);
}

#[test]
fn nothing_gets_out_of_the_read_only_sandbox_of_the_core_tier() {
    contains(Confinement::Core, User::Current, Way::ReadOnly);
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_the_read_only_sandbox() {
    if can_be_nobody() {
        contains(Confinement::Full, User::Nobody, Way::ReadOnly);
        contains(Confinement::Core, User::Nobody, Way::ReadOnly);
    }
}

/// Not of root: hardly anybody is that on macOS.
#[test]
fn nothing_gets_out_behind_seatbelt() {
    let user = if rustix::process::getuid().is_root() {
        User::Nobody
    } else {
        User::Current
    };
    contains(Confinement::Seatbelt, user, Way::Stdio);
}

#[test]
fn nothing_gets_out_of_the_read_only_sandbox_behind_seatbelt() {
    contains(Confinement::Seatbelt, User::Current, Way::ReadOnly);
}

#[test]
fn without_a_sandbox_the_attempts_get_out() {
    escapes(User::Current);
}

#[test]
fn without_a_sandbox_the_attempts_of_an_ordinary_user_get_out() {
    if can_be_nobody() {
        escapes(User::Nobody);
    }
}

fn contains(confinement: Confinement, user: User, way: Way) {
    let mut world = World::new(confinement, user, way);
    if confinement == Confinement::Core && !core_tier_works() {
        let refusal = world.refusal();
        assert!(refusal.contains("Landlock ABI 6 is needed"), "{refusal}");
        return;
    }
    world.open();
    let mut wrong = Vec::new();
    let mut made = 0;
    for attempt in attempts(confinement) {
        if !applies(attempt, user) || !is_promised(attempt.network, confinement) {
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
    // What works in the sandbox that only reads is tested with its tool.
    if way != Way::ReadOnly {
        controls(&mut world, confinement, &mut wrong);
    }
    eprintln!(
        "{confinement:?} {user:?} {way:?}: {made} attempts, {} not as expected",
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{confinement:?} {user:?} {way:?}:\n{}",
        wrong.join("\n")
    );
    assert!(made >= 20, "only {made} attempts were made");
}

fn escapes(user: User) {
    let mut world = World::new(Confinement::None, user, Way::Stdio);
    world.open();
    let mut wrong = Vec::new();
    let mut escaped = 0;
    for attempt in attempts(Confinement::None) {
        if !applies(attempt, user) || attempt.unconfined == Unconfined::Harmful {
            continue;
        }
        let findings = world.make(attempt);
        escaped += usize::from(!findings.escaped.is_empty());
        let expected = match attempt.unconfined {
            Unconfined::Escapes => !findings.escaped.is_empty(),
            Unconfined::Contained => findings.escaped.is_empty(),
            Unconfined::Either | Unconfined::Harmful => true,
        };
        if !expected {
            wrong.push(complaint(attempt, &findings));
        }
    }
    eprintln!("no sandbox, {user:?}: {escaped} attempts got out");
    assert!(
        wrong.is_empty(),
        "without a sandbox, {user:?}:\n{}",
        wrong.join("\n")
    );
}

/// The versions of Landlock's interface that the core tier, a list of ports, and unix sockets on an open network need.
const CORE_ABI: i64 = 6;
const PORTS_ABI: i64 = 4;
const UNIX_SOCKETS_ABI: i64 = 6;

/// True if this kernel is new enough for the core tier; servers refuse to start in it otherwise.
pub(crate) fn core_tier_works() -> bool {
    landlock_abi() >= CORE_ABI
}

#[cfg(target_os = "linux")]
fn landlock_abi() -> i64 {
    const VERSION_QUERY: u32 = 1;
    // SAFETY: asks for the version; the kernel takes no pointer.
    unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION_QUERY,
        )
    }
}

#[cfg(not(target_os = "linux"))]
fn landlock_abi() -> i64 {
    0
}

/// True if a server starts with this network at all; it refuses what it cannot keep.
fn is_promised(network: Net, confinement: Confinement) -> bool {
    match network {
        Net::Open | Net::Off => true,
        Net::Loopback => confinement != Confinement::Core,
        Net::Ports => confinement == Confinement::None || landlock_abi() >= PORTS_ABI,
    }
}

fn complaint(attempt: &Attempt, findings: &Findings) -> String {
    let output = findings.output.trim().replace('\n', "\n    ");
    format!("{}: {:?}\n    {output}", attempt.name, findings.escaped)
}

/// Number of attempts where luck decides.
pub(crate) fn rounds() -> usize {
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

const OWN_UNIX_SOCKETS: &str = "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(); socket.socket(socket.AF_UNIX).connect(\"s\"); print(\"met\")'; rm s";

/// Things that must work: a sandbox in which nothing runs contains everything.
fn controls(world: &mut World, confinement: Confinement, wrong: &mut Vec<String>) {
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
    if confinement == Confinement::Full {
        controls.extend([
            (Net::Open, "shared memory", "python3 -c 'from multiprocessing import Lock; Lock(); print(\"locked\")'".to_owned(), "locked"),
            (Net::Loopback, "own unix sockets", OWN_UNIX_SOCKETS.to_owned(), "met"),
            (Net::Loopback, "an own loopback", "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\",0)); socket.create_connection(s.getsockname()); print(\"met\")'".to_owned(), "met"),
        ]);
        if landlock_abi() >= UNIX_SOCKETS_ABI {
            controls.push((Net::Open, "own unix sockets", OWN_UNIX_SOCKETS.to_owned(), "met"));
        }
    }
    if confinement == Confinement::Seatbelt {
        controls.push((Net::Open, "own unix sockets", OWN_UNIX_SOCKETS.to_owned(), "met"));
    }
    let is_promised = |network| is_promised(network, confinement);
    for (network, name, script, expected) in
        controls.into_iter().filter(|(network, ..)| is_promised(*network))
    {
        let output = world.call(network, &scope, &script);
        if !output.contains(expected) {
            wrong.push(format!("control {name}: {output}"));
        }
    }
    if is_promised(Net::Ports) && !world.allowed_was_reached() {
        wrong.push("control: the listed port was not reached".to_owned());
    }
}

/// A command swaps a directory for a link, over and over, while the guard checks after other commands.
#[test]
fn the_guard_wins_every_race() {
    for confinement in [Confinement::Full, Confinement::Core] {
        let mut world = World::new(confinement, User::Current, Way::Stdio);
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
    for confinement in [Confinement::Full, Confinement::Core] {
        let mut world = World::new(confinement, user, Way::Stdio);
        let scope = world.scope();
        let left = "cd $TMPDIR; mkdir -p a/b c; touch a/b/f c/f; chmod 555 a/b c; chmod 0 a; ls -d a c";
        let output = world.call(Net::Open, &scope, left);
        assert!(output.contains("a\nc\n"), "{confinement:?}: {output}");
        assert_eq!(
            world.leftovers(),
            Vec::<std::path::PathBuf>::new(),
            "{confinement:?}"
        );
    }
}
