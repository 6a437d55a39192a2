use super::*;

/// Pushes `(ticket, bytes)`; tickets in `seen` were delivered. Gives what was forgotten, push by push.
fn forgotten(
    max_entries: usize,
    max_bytes: u64,
    seen: &[Ticket],
    pushes: &[(Ticket, u64)],
) -> Vec<Vec<Ticket>> {
    let mut remembered = remembered(max_entries, max_bytes);
    pushes
        .iter()
        .map(|&(ticket, spooled)| {
            let held = HeldBytes { spooled, findings: 0 };
            remembered
                .push(ticket, held, |ticket| seen.contains(&ticket))
                .forgotten
        })
        .collect()
}

fn remembered(entries: usize, bytes: u64) -> Remembered {
    let bytes = HeldBytes {
        spooled: bytes,
        findings: bytes,
    };
    Remembered::new(RememberedLimits { entries, bytes })
}

#[test]
fn the_oldest_seen_goes_first() {
    let pushes = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)];
    assert_eq!(
        forgotten(3, 100, &[0, 1, 2, 3, 4], &pushes),
        [vec![], vec![], vec![], vec![0], vec![1]]
    );
    assert_eq!(
        forgotten(3, 100, &[1, 3], &pushes),
        [vec![], vec![], vec![], vec![1], vec![3]]
    );
}

#[test]
fn the_unseen_stay_longer_but_not_forever() {
    let pushes: Vec<_> = (0..10).map(|ticket| (ticket, 0)).collect();
    let forgotten = forgotten(2, 100, &[], &pushes);
    assert!(forgotten[..8].iter().all(Vec::is_empty), "{forgotten:?}");
    assert_eq!(forgotten[8..], [vec![0], vec![1]]);
}

#[test]
fn disk_is_bounded_even_for_the_unseen() {
    let pushes = [(0, 40), (1, 0), (2, 40), (3, 40), (4, 200), (5, 1)];
    assert_eq!(
        forgotten(100, 100, &[2], &pushes),
        [vec![], vec![], vec![], vec![2], vec![0, 3], vec![4]],
        "an entry without a file frees nothing, and the newcomer stays"
    );
}

#[test]
fn where_memory_is_short_findings_go_and_operations_stay() {
    let mut remembered = remembered(100, 100);
    for (ticket, findings, shortened) in [
        (0, 40, vec![]),
        (1, 0, vec![]),
        (2, 40, vec![]),
        // What was seen goes first, and the newcomer stays as it is.
        (3, 40, vec![2]),
        (4, 200, vec![0, 3]),
        // No client loses twice.
        (5, 1, vec![4]),
    ] {
        let held = HeldBytes { spooled: 0, findings };
        let evictions = Evictions {
            forgotten: Vec::new(),
            shortened,
        };
        assert_eq!(
            remembered.push(ticket, held, |ticket| ticket == 2),
            evictions,
            "{ticket}"
        );
    }
}
