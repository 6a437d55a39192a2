use std::sync::Barrier;

use super::count_tasks_of_namespace;

#[test]
fn threads_of_a_namespace_are_counted() {
    const THREADS: usize = 40;
    let (started, counted) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let count = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                started.wait();
                counted.wait();
            });
        }
        started.wait();
        let count = count_tasks_of_namespace();
        counted.wait();
        count
    });
    assert!(count > THREADS, "{count}");
}
