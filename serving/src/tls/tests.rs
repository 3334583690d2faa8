use super::*;

#[test]
fn errors_name_flag_and_file() {
    let error = Pem::read("--ca", Path::new("/nonexistent/file")).err().unwrap();
    assert!(error.to_string().starts_with("--ca = \"/nonexistent/file\": No such file"), "{error}");
    assert_eq!(Failure::from(error).code(), 66);
    let error = Pem::read("--ca", Path::new("/dev/null")).err().unwrap();
    assert_eq!(error.to_string(), "--ca = \"/dev/null\": not a regular file");
    let empty = Pem::new("--ca = \"a\"", "no PEM");
    let [certificates, key, roots] =
        [empty.certificates().err(), empty.key().err(), empty.roots().err()].map(Option::unwrap);
    for (error, what) in [(certificates, "certificate"), (key, "private key"), (roots, "certificate")] {
        assert_eq!(error.to_string(), format!("--ca = \"a\": the file contains no PEM-encoded {what}"));
        assert_eq!(Failure::from(error).code(), 78);
    }
}
