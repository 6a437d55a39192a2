use super::{
    Progress,
    progress::{Phase, ProgressMeter},
    rules::ProgressReading,
};

fn meter(phases: &[(&str, f64, f64)]) -> ProgressMeter {
    let phase = |(name, start, share): &(&str, f64, f64)| Phase {
        name: (*name).to_owned(),
        start: *start,
        share: *share,
    };
    ProgressMeter::new(phases.iter().map(phase).collect())
}

fn percent(percent: f64) -> ProgressReading {
    ProgressReading {
        percent: Some(percent),
        ..ProgressReading::default()
    }
}

fn phase(text: &str, percent: Option<f64>) -> ProgressReading {
    ProgressReading {
        phase: Some(text.to_owned()),
        percent,
        ..ProgressReading::default()
    }
}

fn counted() -> ProgressReading {
    ProgressReading {
        is_counted: true,
        ..ProgressReading::default()
    }
}

fn percents(
    meter: &mut ProgressMeter,
    readings: impl IntoIterator<Item = ProgressReading>,
) -> Vec<Option<f64>> {
    readings
        .into_iter()
        .filter_map(|reading| meter.apply(reading))
        .map(|progress| progress.percent)
        .collect()
}

#[test]
fn percent_rises_and_stays_between_0_and_100() {
    let readings = [10.0, 5.0, 10.0, 33.333, -7.0, 250.0, 99.0].map(percent);
    assert_eq!(
        percents(&mut meter(&[]), readings),
        [Some(10.0), Some(33.33), Some(100.0)]
    );
}

#[test]
fn each_phase_fills_its_share() {
    let mut meter = meter(&[
        ("load", 0.0, 20.0),
        ("work", 20.0, 70.0),
        ("work harder", 90.0, 10.0),
    ]);
    let readings = [
        phase("Loading", None),
        phase("LOAD files", Some(50.0)),
        phase("work on a", Some(0.0)),
        phase("work on b", Some(50.0)),
        percent(100.0),
        phase("work harder", Some(50.0)),
        phase("load again", Some(10.0)),
    ];
    let expected = [
        Some(0.0),
        Some(10.0),
        Some(20.0),
        Some(55.0),
        Some(90.0),
        Some(95.0),
        Some(95.0),
    ];
    assert_eq!(percents(&mut meter, readings), expected);
}

#[test]
fn a_percent_outside_of_every_phase_says_nothing_about_the_whole() {
    assert_eq!(
        percents(&mut meter(&[("work", 0.0, 100.0)]), [phase("other", Some(90.0))]),
        [None]
    );
}

#[test]
fn counting_gives_a_percent_once_the_total_is_known() {
    let mut meter = meter(&[]);
    let total = ProgressReading {
        total: Some(4),
        ..ProgressReading::default()
    };
    assert_eq!(
        percents(&mut meter, [counted(), total, counted(), counted()]),
        [None, Some(25.0), Some(50.0), Some(75.0)]
    );
}

#[test]
fn current_and_total_give_a_percent_and_zero_of_zero_gives_none() {
    let of = |current, total| ProgressReading {
        current: Some(current),
        total: Some(total),
        ..ProgressReading::default()
    };
    assert_eq!(
        percents(&mut meter(&[]), [of(0, 0), of(1, 8)]),
        [None, Some(12.5)]
    );
}

#[test]
fn counts_begin_anew_with_each_phase() {
    let mut meter = meter(&[("a", 0.0, 50.0), ("b", 50.0, 50.0)]);
    let total = |text: &str| ProgressReading {
        total: Some(2),
        ..phase(text, None)
    };
    let readings = [total("a"), counted(), counted(), total("b"), counted()];
    assert_eq!(
        percents(&mut meter, readings),
        [Some(0.0), Some(25.0), Some(50.0), Some(50.0), Some(75.0)]
    );
}

#[test]
fn what_is_not_new_is_not_said_and_an_estimate_does_not_linger() {
    let mut meter = meter(&[]);
    let with_eta = ProgressReading {
        eta_seconds: Some(9.0),
        ..percent(10.0)
    };
    assert_eq!(
        meter.apply(with_eta),
        Some(Progress {
            percent: Some(10.0),
            eta_seconds: Some(9.0),
            ..Progress::default()
        })
    );
    assert_eq!(
        meter.apply(percent(10.0)),
        Some(Progress {
            percent: Some(10.0),
            ..Progress::default()
        })
    );
    assert_eq!(meter.apply(percent(10.0)), None);
    assert_eq!(meter.apply(percent(8.0)), None);
}
