use super::*;

#[test]
fn values_rise_with_every_notification_and_never_run_ahead() {
    let mut meter = Meter::default();
    let mut last = 0.0;
    for percent in [
        None,
        None,
        Some(10.0),
        Some(10.0),
        None,
        Some(5.0),
        Some(80.0),
        Some(100.0),
        Some(100.0),
    ] {
        let value = meter.next(percent);
        assert!(value > last, "{value} after {last}");
        assert!(value < 100.0);
        last = value;
    }
    for _ in 0..1_000_000 {
        let value = meter.next(Some(100.0));
        assert!(value > last && value < 100.0, "{value} after {last}");
        last = value;
    }
    assert!((Meter { last: 3.0 }.next(Some(40.0)) - 40.0).abs() < f64::EPSILON);
}
