use super::*;

#[tokio::test]
async fn text_without_line_feeds_comes_in_pieces_and_to_the_last_word() {
    let long = vec![b'x'; 10 * READ_BYTES];
    let text = [&b"one\n"[..], &long, b"\ntwo\nlast"].concat();
    let mut inbox = Inbox::new(text.as_slice(), 1000);
    let mut pieces = Vec::new();
    while let Some(piece) = inbox.next_piece().await.unwrap() {
        assert!(piece.len() <= 1000 + 2 * READ_BYTES, "{}", piece.len());
        pieces.push(piece);
    }
    assert_eq!(pieces.first().unwrap(), "one");
    assert_eq!(pieces[pieces.len() - 2..], ["two", "last"]);
    let all: usize = pieces.iter().map(Bytes::len).sum();
    assert_eq!(all, long.len() + "onetwolast".len());
}
