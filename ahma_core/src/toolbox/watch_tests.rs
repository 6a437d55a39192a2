use notify::event::{CreateKind, Flag, ModifyKind};

use super::*;

fn event(kind: EventKind, path: &str) -> notify::Result<Event> {
    Ok(Event::new(kind).add_path(path.into()))
}

/// Notify's event for an overflow of the kernel's queue: it has no path.
fn overflow() -> notify::Result<Event> {
    Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan))
}

#[test]
fn an_overflow_an_error_and_a_changed_tool_file_call_for_a_reload() {
    let directory = Path::new("/scope/.ahma/tools");
    let created = EventKind::Create(CreateKind::Any);
    for (seen, expected) in [
        (overflow(), true),
        (Err(notify::Error::generic("lost")), true),
        (event(created, "/scope/.ahma/tools/git.json"), true),
        (event(EventKind::Modify(ModifyKind::Any), "/scope/.ahma"), true),
        (event(created, "/scope/.ahma/tools/notes.txt"), false),
        (event(created, "/scope/other/git.json"), false),
        (
            event(EventKind::Access(AccessKind::Read), "/scope/.ahma/tools/git.json"),
            false,
        ),
    ] {
        assert_eq!(calls_for_reload(&seen, directory), expected, "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_that_never_stop_are_reported_all_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let watch = DirectoryWatch::new(directory.path().to_owned()).expect("a watch");
    let touched = watch.touched.clone();
    let restless = tokio::spawn(async move {
        loop {
            touched.notify_one();
            tokio::time::sleep(QUIET / 2).await;
        }
    });
    watch.changed().await;
    restless.abort();
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_reported_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let watch = DirectoryWatch::new(directory.path().to_owned()).expect("a watch");
    let touched = watch.touched.clone();
    let burst = tokio::spawn(async move {
        for _ in 0..5 {
            touched.notify_one();
            tokio::time::sleep(QUIET / 2).await;
        }
    });
    watch.changed().await;
    burst.await.expect("the burst is over");
    let more = timeout(MAX_BURST, watch.changed()).await;
    assert!(more.is_err(), "one burst was reported twice");
}
