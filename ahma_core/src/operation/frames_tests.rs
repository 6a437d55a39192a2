use super::*;

fn packed(plain: &[u8]) -> FrameReader {
    let mut source = tempfile::tempfile().unwrap();
    source.write_all(plain).unwrap();
    io::Seek::rewind(&mut source).unwrap();
    let target = tempfile::tempfile().unwrap();
    let mut writer = FrameWriter::new(source, target.try_clone().unwrap()).unwrap();
    while writer.step().unwrap() == FrameStep::More {}
    FrameReader::open(target).unwrap()
}

#[test]
fn any_stretch_is_read_as_it_was_written() {
    for size in [
        0,
        1,
        FRAME_BYTES - 1,
        FRAME_BYTES,
        FRAME_BYTES + 1,
        3 * FRAME_BYTES + 17,
    ] {
        let plain: Vec<u8> = (0..size).map(|place| (place * 31 + place / 7) as u8).collect();
        let reader = packed(&plain);
        assert_eq!(reader.len(), size as u64);
        for (from, to) in [(0, size), (size / 3, size / 2), (size.saturating_sub(1), size)] {
            let mut found = vec![0; to - from];
            reader.read_exact_at(&mut found, from as u64).unwrap();
            assert!(found == plain[from..to], "{from} to {to} of {size}");
        }
        let past = reader.read_exact_at(&mut [0], size as u64);
        assert_eq!(past.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn the_zstd_program_reads_it() {
    let temp = tempfile::tempdir().unwrap();
    let (plain_path, packed_path) = (temp.path().join("plain"), temp.path().join("packed.zst"));
    let plain = "a line of output\n".repeat(200_000);
    std::fs::write(&plain_path, &plain).unwrap();
    let target = File::create(&packed_path).unwrap();
    let mut writer = FrameWriter::new(File::open(&plain_path).unwrap(), target).unwrap();
    while writer.step().unwrap() == FrameStep::More {}
    // The library's own reader of whole files, which is what the program is made of.
    let unpacked = zstd::stream::decode_all(File::open(&packed_path).unwrap()).unwrap();
    assert!(unpacked == plain.as_bytes());
    assert!(std::fs::metadata(&packed_path).unwrap().len() < plain.len() as u64 / 20);
}

#[test]
fn a_file_that_is_cut_or_no_such_file_is_refused() {
    for bytes in [&b""[..], b"short", b"no table of frames is at the end of this"] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        assert!(FrameReader::open(file).is_err());
    }
}
