use super::*;

async fn lines(input: &[u8], limit: usize, chunk: usize) -> Vec<Result<String, &'static str>> {
    let (mut writer, reader) = tokio::io::duplex(chunk);
    let input = input.to_vec();
    let feeding = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        writer.write_all(&input).await.expect("the reader reads on");
    });
    let mut reader = LineReader::new(reader, limit);
    let mut seen = Vec::new();
    loop {
        match reader.next().await.expect("duplex streams do not fail") {
            Line::Text(line) => seen.push(Ok(String::from_utf8_lossy(&line).into_owned())),
            Line::TooLong => seen.push(Err("too long")),
            Line::End => break,
        }
    }
    feeding.await.expect("fed");
    seen
}

#[tokio::test]
async fn lines_are_cut_the_same_whatever_the_reads_are() {
    let input = b"one\n\r\ntwo\r\n0123456789\n0123456789ABCDEF\nthree\nlast";
    let expected: Vec<Result<String, &str>> = vec![
        Ok("one".into()),
        Ok("".into()),
        Ok("two".into()),
        Ok("0123456789".into()),
        Err("too long"),
        Ok("three".into()),
        Ok("last".into()),
    ];
    for chunk in [1, 2, 3, 7, 11, 1024] {
        assert_eq!(lines(input, 10, chunk).await, expected, "chunks of {chunk}");
    }
}

#[tokio::test]
async fn an_over_long_line_at_the_end_is_noticed_once() {
    assert_eq!(lines(&[b'x'; 5000], 10, 64).await, vec![Err("too long")]);
}

#[tokio::test]
async fn text_without_line_feeds_comes_in_pieces_and_to_the_last_word() {
    let long = vec![b'x'; 10 * READ_BYTES];
    let text = [&b"one\n"[..], &long, b"\ntwo\nlast"].concat();
    let mut reader = LineReader::new(text.as_slice(), 1000);
    let mut pieces = Vec::new();
    while let Some(piece) = reader.next_piece().await.unwrap() {
        assert!(piece.len() <= 1000 + 2 * READ_BYTES, "{}", piece.len());
        pieces.push(piece);
    }
    assert_eq!(pieces.first().unwrap(), "one");
    assert_eq!(pieces[pieces.len() - 2..], ["two", "last"]);
    let all: usize = pieces.iter().map(BytesMut::len).sum();
    assert_eq!(all, long.len() + "onetwolast".len());
}
