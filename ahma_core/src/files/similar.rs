//! The places of a text that most resemble lines that were not found in it.

use std::fmt::Write as _;

use super::text::lines;

/// Places named in an error.
const MAX_PLACES: usize = 2;
/// Lines shown of each place.
const MAX_LINES: usize = 8;
/// Lines compared letter by letter; beyond this only equal lines count.
const MAX_COMPARED: usize = 20_000;
/// Similarity below which a line is not worth showing.
const MIN_SIMILARITY: f64 = 0.6;
/// Share of the wanted letters below which a line is not thought to contain them.
const MIN_CONTAINED: f64 = 0.8;

/// Sentences that tell where something like `wanted` stands; empty if nothing resembles it.
pub(super) fn nearest_places(content: &[u8], wanted: &[&[u8]]) -> String {
    let file: Vec<String> = lines(content).into_iter().map(lossy).collect();
    let wanted: Vec<String> = wanted.iter().map(|line| lossy(line)).collect();
    let height = wanted.len().clamp(1, file.len().max(1));
    let mut places: Vec<(f64, usize)> = scores(&file, &wanted);
    places.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut chosen: Vec<usize> = Vec::new();
    for (_, start) in places {
        if chosen.len() < MAX_PLACES && chosen.iter().all(|other| other.abs_diff(start) >= height) {
            chosen.push(start);
        }
    }
    let mut text = String::new();
    for start in chosen {
        let end = (start + height).min(file.len());
        let note = if differ_in_space(&file[start..end], &wanted) {
            ", which differs in white space only"
        } else {
            ""
        };
        let _ = write!(text, "\nnearest: line {}{note}", start + 1);
        for (index, line) in file[start..end.min(start + MAX_LINES)].iter().enumerate() {
            let _ = write!(text, "\n{}\t{}", start + index + 1, line);
        }
    }
    text
}

/// Score and first line of every window that resembles `wanted` at all.
fn scores(file: &[String], wanted: &[String]) -> Vec<(f64, usize)> {
    let height = wanted.len();
    let equal = |line: &str, other: &str| !line.trim().is_empty() && line.trim() == other.trim();
    let mut found = Vec::new();
    for start in 0..file.len() {
        let window = &file[start..(start + height).min(file.len())];
        let count = window
            .iter()
            .zip(wanted)
            .filter(|(line, other)| equal(line, other))
            .count();
        if count > 0 {
            found.push((count as f64, start));
        }
    }
    if !found.is_empty() || file.len() > MAX_COMPARED {
        return found;
    }
    let Some((offset, first)) = wanted
        .iter()
        .enumerate()
        .find(|(_, line)| !line.trim().is_empty())
    else {
        return found;
    };
    let alike = file.iter().enumerate().filter_map(|(number, line)| {
        let similarity = strsim::sorensen_dice(line.trim(), first.trim());
        let similarity = Some(similarity).filter(|similarity| *similarity >= MIN_SIMILARITY);
        // One line may be wanted in part.
        let contained = (height == 1).then(|| contained(line, first));
        let contained = contained.filter(|share| *share >= MIN_CONTAINED);
        Some((similarity.or(contained)?, number.saturating_sub(offset)))
    });
    alike.collect()
}

/// The share of neighbouring letters of `wanted` that `line` has, too; white space does not count.
fn contained(line: &str, wanted: &str) -> f64 {
    let pairs = |text: &str| -> Vec<(char, char)> {
        let letters: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let (mut there, wanted) = (pairs(line), pairs(wanted));
    let total = wanted.len();
    let found = wanted.into_iter().filter(|pair| {
        let place = there.iter().position(|other| other == pair);
        place.map(|place| there.swap_remove(place)).is_some()
    });
    found.count() as f64 / total.max(1) as f64
}

/// The same letters in the same order, of which a single line may have more.
fn differ_in_space(place: &[String], wanted: &[String]) -> bool {
    let letters = |line: &String| line.split_whitespace().collect::<String>();
    match wanted {
        [only] => place.iter().any(|line| letters(line).contains(&letters(only))),
        _ => place.iter().map(letters).eq(wanted.iter().map(letters)),
    }
}

fn lossy(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}
