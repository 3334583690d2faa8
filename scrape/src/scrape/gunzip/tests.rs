use std::io::Write as _;

use flate2::Compression;
use flate2::GzBuilder;

use super::*;

fn compressed(data: &[u8]) -> Vec<u8> {
    let mut encoder =
        GzBuilder::new().filename("metrics").comment("x").extra("y").write(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Feeds `input` in chunks of `size`, and returns the output and the largest chunk of it.
fn decompressed(input: &[u8], size: usize) -> io::Result<(Vec<u8>, usize)> {
    let (mut gunzip, mut output, mut largest) = (Gunzip::new(), Vec::new(), 0);
    let mut drain = |gunzip: &mut Gunzip| {
        while let Some(chunk) = gunzip.next()? {
            largest = largest.max(chunk.len());
            output.extend_from_slice(&chunk);
        }
        io::Result::Ok(())
    };
    for chunk in input.chunks(size) {
        gunzip.push(Bytes::copy_from_slice(chunk));
        drain(&mut gunzip)?;
    }
    gunzip.end();
    drain(&mut gunzip)?;
    Ok((output, largest))
}

#[test]
fn output_does_not_depend_on_the_size_of_chunks() {
    let text = "a_total{x=\"1\"} 5\n".repeat(5000);
    let input = compressed(text.as_bytes());
    for size in [1, 7, 100, input.len()] {
        let (output, largest) = decompressed(&input, size).unwrap();
        assert!(output == text.as_bytes() && largest <= CHUNK, "{size}: {} bytes", output.len());
    }
}

#[test]
fn several_members_follow_each_other() {
    let input = [compressed(b"a 1\n"), compressed(b"b 2\n")].concat();
    for size in [1, input.len()] {
        assert_eq!(decompressed(&input, size).unwrap().0, b"a 1\nb 2\n");
    }
}

#[test]
fn a_bomb_expands_in_limited_chunks() {
    let input = compressed(&vec![b'\n'; 8 << 20]);
    assert!(input.len() < 16 << 10, "{}", input.len());
    let (output, largest) = decompressed(&input, input.len()).unwrap();
    assert_eq!((output.len(), largest), (8 << 20, CHUNK));
}

#[test]
fn truncated_or_invalid_input_is_an_error() {
    let input = compressed(b"a 1\n");
    for end in 1..input.len() {
        assert!(decompressed(&input[..end], 4).is_err(), "{end}");
    }
    let mut corrupt = input.clone();
    corrupt[input.len() - 6] ^= 1;
    for bad in [b"a 1\n".as_slice(), &corrupt, &[input, b"garbage, longer than a header".to_vec()].concat()] {
        assert!(decompressed(bad, 100).is_err());
    }
}
