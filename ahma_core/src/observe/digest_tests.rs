use super::*;

fn digest(lines: &[(&str, LineUse)]) -> Digest {
    let mut digest = Digest::default();
    for (line, line_use) in lines {
        digest.add_line(line, *line_use);
    }
    digest
}

#[test]
fn lines_that_became_something_else_are_left_out() {
    let digest = digest(&[
        ("plain", LineUse::Plain),
        ("noise", LineUse::Taken),
        ("first of a pair", LineUse::Plain),
        ("second of a pair", LineUse::TakenWithPrevious),
        ("the end", LineUse::Plain),
    ]);
    assert_eq!(digest.explanation(1000), "plain\nthe end");
}

#[test]
fn of_many_lines_both_ends_are_shown_and_the_rest_is_counted() {
    let mut digest = Digest::default();
    for number in 0..10_000 {
        digest.add_line(&format!("line {number}"), LineUse::Plain);
    }
    let text = digest.explanation(200);
    assert!(text.len() <= 250, "{text}");
    assert!(text.starts_with("line 0\nline 1\n"), "{text}");
    assert!(text.ends_with("line 9998\nline 9999"), "{text}");
    let shown = text.lines().filter(|line| line.starts_with("line")).count();
    assert!(
        text.contains(&format!("[... {} lines left out ...]", 10_000 - shown)),
        "{text}"
    );
}

#[test]
fn only_the_last_summaries_are_kept() {
    let mut digest = Digest::default();
    for number in 0..100 {
        digest.add_summary(format!("{number} passed"));
        digest.add_summary(format!("{number} passed"));
    }
    let summary: Vec<&str> = digest.summary().collect();
    assert_eq!(summary.len(), MAX_SUMMARY_LINES);
    assert_eq!(summary.last(), Some(&"99 passed"));
}
