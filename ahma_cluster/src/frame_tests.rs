use proptest::prelude::*;

use super::*;

fn frame(kind: FrameKind, number: u64, data: &[u8]) -> Frame {
    Frame {
        kind,
        number,
        data: Bytes::copy_from_slice(data),
    }
}

#[test]
fn frames_are_read_back_and_anything_else_is_not() {
    for kind in [FrameKind::Output, FrameKind::Finding, FrameKind::Progress] {
        let sent = frame(kind, u64::MAX - 1, b"text");
        assert_eq!(Frame::decode(&sent.encode()), Some(sent));
    }
    for other in [&b""[..], b"o", b"o0000000", b"x00000000text"] {
        assert_eq!(Frame::decode(&Bytes::from_static(other)), None, "{other:?}");
    }
}

#[test]
fn only_newer_progress_counts() {
    let mut assembler = Assembler::default();
    let mut take = |number| assembler.take(frame(FrameKind::Progress, number, b"{}")).len();
    assert_eq!([take(0), take(2), take(1), take(2), take(3)], [1, 1, 0, 0, 1]);
}

proptest! {
    /// Whatever is sent again, cut at other places, and in whatever order: each byte once, in order.
    #[test]
    fn output_is_put_together_byte_for_byte(
        output in prop::collection::vec(any::<u8>(), 0..400),
        cuts in prop::collection::vec((0..400_usize, 1..60_usize), 0..40),
        seed in any::<u64>(),
    ) {
        let mut frames: Vec<Frame> = output
            .chunks(37)
            .enumerate()
            .map(|(index, chunk)| frame(FrameKind::Output, index as u64 * 37, chunk))
            .collect();
        frames.extend(cuts.iter().filter(|(from, _)| *from < output.len()).map(|(from, len)| {
            let end = (from + len).min(output.len());
            frame(FrameKind::Output, *from as u64, &output[*from..end])
        }));
        // A cheap shuffle that shrinks well.
        let mut state = seed | 1;
        for index in (1..frames.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            frames.swap(index, (state >> 33) as usize % (index + 1));
        }
        let mut assembler = Assembler::default();
        let mut read = Vec::new();
        for frame in frames {
            for (_, piece) in assembler.take(frame) {
                read.extend_from_slice(&piece);
            }
        }
        prop_assert_eq!(read, output.clone());
        prop_assert_eq!(assembler.reached(), (output.len() as u64, 0));
        prop_assert!(!assembler.has_gap());
    }

    #[test]
    fn findings_come_once_and_in_order(order in prop::collection::vec(0..20_u64, 0..100)) {
        let mut assembler = Assembler::default();
        let mut read = Vec::new();
        for number in order.iter().copied().chain(0..20) {
            for (_, piece) in assembler.take(frame(FrameKind::Finding, number, number.to_string().as_bytes())) {
                read.push(String::from_utf8(piece.to_vec()).unwrap());
            }
        }
        let expected: Vec<String> = (0..20).map(|number: u64| number.to_string()).collect();
        prop_assert_eq!(read, expected);
    }
}
