use super::*;

#[test]
fn an_end_is_told_for_people() {
    let table = [
        (Some(0), "exit code 0"),
        (Some(1 << 8), "exit code 1"),
        (Some(9), "signal 9"),
        (None, "unknown status"),
    ];
    for (wait_status, expected) in table {
        assert_eq!(how_it_ended(wait_status.map(ExitStatus::from_raw)), expected);
    }
}
