use proptest::prelude::*;

use super::*;
use crate::operation::OperationId;

/// Cuts `output` as a log that holds `max_bytes` of each end would.
fn cut_output(output: &[u8], max_bytes: usize) -> (Excerpt, OperationId) {
    let id = OperationId::random();
    let newlines = count_newlines(output);
    let ends = HeadAndTail {
        head: &output[..output.len().min(max_bytes)],
        tail: &output[output.len().saturating_sub(max_bytes)..],
        total_bytes: output.len() as u64,
        newlines,
        total_lines: newlines + u64::from(output.last().is_some_and(|&last| last != b'\n')),
        loss: None,
    };
    (cut(ends, max_bytes, ExcerptFocus::Ends, &id), id)
}

fn numbered_lines(count: usize) -> Vec<u8> {
    (1..=count)
        .flat_map(|number| format!("line {number}\n").into_bytes())
        .collect()
}

#[test]
fn a_short_output_is_shown_whole() {
    for output in ["", "one line", "two\nlines\n", "naïve\n"] {
        let (excerpt, _) = cut_output(output.as_bytes(), 1024);
        assert_eq!((excerpt.text.as_str(), excerpt.left_out), (output, None));
    }
}

#[test]
fn a_long_output_is_cut_at_line_borders_and_says_what_is_missing() {
    let output = numbered_lines(1000);
    let (excerpt, id) = cut_output(&output, 1024);
    let left_out = excerpt.left_out.unwrap();
    let (head, rest) = excerpt.text.split_once("[...").unwrap();
    let (marker, tail) = rest.split_once("...]\n").unwrap();

    let last_shown = head.lines().count() as u64;
    let first_shown = 1000 - tail.lines().count() as u64 + 1;
    assert_eq!(
        head,
        String::from_utf8(numbered_lines(last_shown as usize)).unwrap()
    );
    assert!(tail.starts_with(&format!("line {first_shown}\n")) && tail.ends_with("line 1000\n"));
    assert_eq!(
        (left_out.from_line, left_out.from_byte),
        (last_shown + 1, head.len() as u64)
    );
    assert_eq!(left_out.lines, first_shown - last_shown - 1);
    assert_eq!(left_out.bytes as usize, output.len() - head.len() - tail.len());
    assert_eq!(
        marker,
        format!(
            " lines {} to {} left out; \
             to read them: output {{\"operation_id\": \"{id}\", \"from_line\": {}}} ",
            left_out.from_line,
            first_shown - 1,
            left_out.from_line
        )
    );
}

#[test]
fn an_overlong_line_is_cut_inside() {
    let mut output = b"first\n".to_vec();
    output.extend(std::iter::repeat_n(b'x', 100_000));
    output.extend(b"\nlast\n");
    let (excerpt, _) = cut_output(&output, 1024);
    let left_out = excerpt.left_out.unwrap();
    assert_eq!((left_out.from_line, left_out.lines), (2, 1));
    assert!(
        excerpt.text.starts_with("first\nxxx") && excerpt.text.ends_with("xxx\nlast\n"),
        "{}",
        excerpt.text
    );
    assert!(
        excerpt.text.contains("x\n[... "),
        "the marker has a line of its own"
    );
    assert!(excerpt.text.contains(" bytes of line 2 left out;"));
    let shown = excerpt.text.split_once("\n[... ").unwrap().0;
    assert_eq!(left_out.from_byte, shown.len() as u64);
    assert!(
        excerpt
            .text
            .contains(&format!("\"from_byte\": {}}} ...]", shown.len())),
        "from the line on would be what was shown: {}",
        excerpt.text
    );
}

#[test]
fn a_loss_is_named_in_the_gap() {
    let output = numbered_lines(1000);
    let (half, _) = (output.len() / 2, ());
    let ends = HeadAndTail {
        head: &output[..1024],
        tail: &output[output.len() - 1024..],
        total_bytes: output.len() as u64,
        newlines: 1000,
        total_lines: 1000,
        loss: Some(Loss {
            bytes: half as u64,
            cause: LossCause::Quota,
        }),
    };
    let text = cut(ends, 1024, ExcerptFocus::Ends, &OperationId::random()).text;
    assert!(
        text.contains(&format!(
            "; {half} bytes before the end were over the quota and are not kept;"
        )),
        "{text}"
    );
}

fn any_output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-z ]{0,60}\n".prop_map(String::into_bytes),
        2 => "\\PC{0,40}".prop_map(String::into_bytes),
        2 => prop::collection::vec(any::<u8>(), 0..80),
        1 => (1..3000usize).prop_map(|length| vec![b'x'; length]),
        1 => (1..900usize).prop_map(|length| vec![0xE2; length]),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn never_too_long_and_always_exact(output in any_output()) {
        let (excerpt, _) = cut_output(&output, 1024);
        prop_assert!(excerpt.text.len() <= 1024, "{} bytes", excerpt.text.len());
        let Some(left_out) = excerpt.left_out else {
            prop_assert_eq!(excerpt.text, String::from_utf8_lossy(&output));
            return Ok(());
        };
        // Find the raw cuts again from the text alone: both ends must be ends of the output, and the numbers must fit.
        let marker = excerpt.text.find("[... ").unwrap();
        let marker_end = marker + excerpt.text[marker..].find("...]\n").unwrap() + "...]\n".len();
        let head = excerpt.text[..marker].strip_suffix('\n').unwrap_or(&excerpt.text[..marker]);
        let tail = &excerpt.text[marker_end..];
        let shown = String::from_utf8_lossy(&output);
        prop_assert!(shown.starts_with(head) && shown.ends_with(tail));

        let head_bytes = head_cut(&output[..output.len().min(1024)], (1024 - MARKER_BYTES) / 2);
        let tail_start = head_bytes + left_out.bytes as usize;
        prop_assert!(tail_start <= output.len());
        prop_assert_eq!(String::from_utf8_lossy(&output[tail_start..]), tail);
        prop_assert_eq!(left_out.from_line, count_newlines(&output[..head_bytes]) + 1);
        prop_assert_eq!(left_out.lines, count_newlines(&output[head_bytes..tail_start - 1]) + 1);
    }

    #[test]
    fn a_prefix_fits_and_cannot_be_longer(output in any_output(), budget in 0usize..200) {
        let cut = fitting_prefix(&output, budget);
        prop_assert!(shown_len(&output[..cut]) <= budget);
        if cut < output.len() {
            let longer = (cut + 1..=output.len().min(cut + 4)).find(|&end| {
                // Only an end between two characters counts.
                shown_len(&output[..end]) + shown_len(&output[end..]) == shown_len(&output)
            });
            if let Some(end) = longer {
                prop_assert!(shown_len(&output[..end]) > budget);
            }
        }
    }
}

#[test]
fn a_failure_shows_mostly_its_end_and_a_very_long_success_only_a_glimpse() {
    let output = numbered_lines(100_000);
    let shown = |focus| {
        let ends = HeadAndTail {
            head: &output[..8_000],
            tail: &output[output.len() - 8_000..],
            total_bytes: output.len() as u64,
            newlines: 100_000,
            total_lines: 100_000,
            loss: None,
        };
        let text = cut(ends, 8_000, focus, &OperationId::random()).text;
        let (head, tail) = text.split_once("[...").unwrap();
        (head.len(), tail.len())
    };
    let (head, tail) = shown(ExcerptFocus::End);
    assert!(
        head > 1_000 && tail > 3 * head && head + tail > 7_000,
        "{head} and {tail}"
    );
    let (head, tail) = shown(ExcerptFocus::Ends);
    assert!(head > 300 && head + tail <= GLIMPSE_BYTES, "{head} and {tail}");
}
