use super::*;

const LOCKS: &str = "1: POSIX  ADVISORY  READ 90 08:01:77 128 128
2: FLOCK  ADVISORY  WRITE 1 08:01:4711 0 EOF
2: -> FLOCK  ADVISORY  WRITE 200 08:01:4711 0 EOF
3: OFDLCK ADVISORY  WRITE -1 08:01:9 0 EOF
3: -> OFDLCK ADVISORY  READ -1 08:01:9 0 EOF
a line of another form
";

#[test]
fn a_lock_is_found_with_the_process_that_has_it() {
    let of = |pids: &[i32]| awaited_lock(LOCKS, &pids.iter().copied().collect());
    let Some(Standstill::Lock { file: None, holder }) = of(&[199, 200]) else {
        panic!("process 200 waits");
    };
    assert_eq!(holder.map(|(pid, _)| pid), Some(1));
    for others in [&[1][..], &[90], &[]] {
        assert_eq!(of(others), None, "{others:?}");
    }
}

#[test]
fn a_supervisor_that_is_not_known_has_nothing_to_tell() {
    assert_eq!(SupervisorId::default().standstill(), None);
}
