use super::*;

const DAY: i64 = 86_400_000;
const HOUR: i64 = 3_600_000;
const NOW: i64 = 1_000 * DAY;

const LIMITS: KeepLimits = KeepLimits {
    age: Duration::from_secs(7 * 86_400),
    bytes: 100,
};

fn row(number: i64, age: i64) -> EndedRow {
    EndedRow {
        number,
        ended_at: NOW - age,
        collected: true,
        keep_until: None,
        bytes: 40,
    }
}

#[test]
fn the_old_go_and_then_the_oldest_until_the_rest_fits() {
    let rows = [row(1, 8 * DAY), row(2, 6 * DAY), row(3, 5 * DAY), row(4, 0)];
    assert_eq!(dropped(&rows, 160, LIMITS, NOW), [1, 2]);
    assert_eq!(dropped(&rows[1..3], 80, LIMITS, NOW), [0; 0]);
}

#[test]
fn a_result_that_was_not_collected_stays_for_an_hour() {
    let uncollected = |age| EndedRow {
        collected: false,
        ..row(1, age)
    };
    let full = 1_000;
    assert_eq!(dropped(&[uncollected(HOUR - 1)], full, LIMITS, NOW), [0; 0]);
    assert_eq!(dropped(&[uncollected(HOUR)], full, LIMITS, NOW), [1]);
}

#[test]
fn a_task_keeps_its_operation() {
    let promised = EndedRow {
        keep_until: Some(NOW + 1),
        ..row(1, 30 * DAY)
    };
    assert_eq!(
        dropped(std::slice::from_ref(&promised), 1_000, LIMITS, NOW),
        [0; 0]
    );
    assert_eq!(dropped(&[promised], 1_000, LIMITS, NOW + 1), [1]);
}

#[test]
fn a_clock_that_was_set_back_ages_nothing_and_keeps_nothing_from_going() {
    let ahead = [
        row(1, -30 * DAY),
        EndedRow {
            collected: false,
            ..row(2, -30 * DAY)
        },
    ];
    assert_eq!(dropped(&ahead, 80, LIMITS, NOW), [0; 0]);
    assert_eq!(dropped(&ahead, 120, LIMITS, NOW), [1]);
    assert_eq!(dropped(&ahead, 180, LIMITS, NOW), [1, 2]);
}
