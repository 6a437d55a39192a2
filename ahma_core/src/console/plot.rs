//! Small plots, as SVG.

use maud::{Markup, html};

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 48.0;
/// Room for the width of a mark.
const MARGIN: f64 = 3.0;

/// A line over time, the newest value at the right. Where nothing is known there is no line.
pub(super) fn plot(
    title: &str,
    values: &[Option<f64>],
    least_top: f64,
    shown: impl Fn(f64) -> String,
) -> Markup {
    let known = || values.iter().flatten().copied();
    let highest = known().fold(0.0_f64, f64::max);
    let newest = known().next_back();
    let top = highest.max(least_top);
    let step = WIDTH / (values.len().max(2) - 1) as f64;
    let place = |(index, value): (usize, &Option<f64>)| {
        value.map(|value| {
            (
                index as f64 * step,
                HEIGHT - MARGIN - value / top * (HEIGHT - 2.0 * MARGIN),
            )
        })
    };
    let places: Vec<Option<(f64, f64)>> = values.iter().enumerate().map(place).collect();
    let now = newest.map_or_else(|| "–".to_owned(), &shown);
    let most = format!("max {}", shown(highest));
    let label = format!("{title}: now {now}, {most}");
    html! {
        figure.plot {
            figcaption { span.name { (title) } b { (now) } @if newest.is_some() { span.most { (most) } } }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
                @for run in places.split(Option::is_none) {
                    @match run {
                        [] => {},
                        // A line without length has round ends all the same.
                        [_] => path.dot d={ (line(run)) "h0" } {},
                        _ => { path.area d={ (line(run)) (ground(run)) } {} path.line d=(line(run)) {} },
                    }
                }
            }
        }
    }
}

/// The rest of the area between a line and the ground.
fn ground(run: &[Option<(f64, f64)>]) -> String {
    let mut places = run.iter().flatten();
    match (places.next(), places.next_back()) {
        (Some((first, _)), Some((last, _))) => format!("L{last:.1} {HEIGHT}L{first:.1} {HEIGHT}Z"),
        _ => String::new(),
    }
}

fn line(run: &[Option<(f64, f64)>]) -> String {
    let mut path = String::new();
    for (x, y) in run.iter().flatten() {
        let verb = if path.is_empty() { 'M' } else { 'L' };
        path.push_str(&format!("{verb}{x:.1} {y:.1}"));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_gaps_where_nothing_is_known_and_says_its_values() {
        let values = [Some(0.0), Some(2.0), None, Some(1.0)];
        let shown = |value| format!("{value:.1}");
        let svg = plot("Load", &values, 1.0, shown).into_string();
        assert!(svg.contains("Load: now 1.0, max 2.0"), "{svg}");
        for (class, count) in [("line", 1), ("dot", 1)] {
            let mark = format!("class=\"{class}\"");
            assert_eq!(svg.matches(&mark).count(), count, "{class}: {svg}");
        }
        let empty = plot("Load", &[], 1.0, shown).into_string();
        assert!(empty.contains("now –"), "{empty}");
    }
}
