use super::*;

/// Returns the file of this content.
fn file(content: &[Bytes]) -> Vec<u8> {
    let mut file = Vec::new();
    write(content, &mut file).unwrap();
    file
}

#[test]
fn a_file_has_the_content() {
    let mut random = fastrand::Rng::with_seed(7);
    let noise: Bytes = (0..200_000).map(|_| random.u8(..)).collect();
    for parts in [vec![], vec![Bytes::new()], vec![Bytes::from_static(b"x"), Bytes::new()], vec![noise; 3]] {
        assert!(content(file(&parts)).unwrap() == parts.concat());
    }
}

#[test]
fn what_repeats_itself_is_small() {
    let clusters =
        (0..1000).map(|number| Bytes::from(format!("outbound|80||service-{number}.shop.svc.cluster.local")));
    let parts: Vec<Bytes> = clusters.collect();
    assert!(file(&parts).len() < parts.concat().len() / 4);
}

#[test]
fn files_of_older_versions_are_their_content() {
    assert_eq!(content(b"app-health xDS cache 1\n...".to_vec()).unwrap(), b"app-health xDS cache 1\n...");
}

#[test]
fn damaged_files_are_errors() {
    let good = file(&[Bytes::from_static(b"outbound|80||payments.shop.internal")]);
    for length in 0..good.len() {
        let cut = good[..length].to_vec();
        assert!(content(cut.clone()).is_err() || length < FORMAT.len(), "{cut:?}");
    }
    for size in [0_u64, 1, 36, (SIZE_LIMIT as u64) + 1, u64::MAX] {
        let mut other = good.clone();
        other[FORMAT.len()..FORMAT.len() + SIZE_LENGTH].copy_from_slice(&size.to_le_bytes());
        assert!(content(other).is_err(), "{size}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let mut random = fastrand::Rng::with_seed(7);
    let noise: Bytes = (0..200_000).map(|_| random.u8(..)).collect();
    let mut full = vec![0; 1000];
    let error = write(&[noise], &mut &mut full[..]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}
