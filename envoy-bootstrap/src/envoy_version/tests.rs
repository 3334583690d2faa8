use super::{EnvoyBuild, EnvoyVersion, NotEnvoyVersion, lacks_fixes};

#[test]
fn versions_that_lack_fixes() {
    for (version, lacks) in [
        ("1.35.9", true),
        ("1.36.9", true),
        ("1.36.10", false),
        ("1.39.0", true),
        ("1.39.1", false),
        ("1.40.0", false),
        ("2.0.0", false),
        ("1.40.0-dev", false),
        ("dev", false),
    ] {
        assert_eq!(lacks_fixes(version), lacks, "{version}");
    }
}

#[test]
fn versions_are_read_and_compared() {
    let rows = [
        ("1.40", Ok(EnvoyVersion(1, 40))),
        ("1.39.1", Ok(EnvoyVersion(1, 39))),
        ("2.0", Ok(EnvoyVersion(2, 0))),
        ("1.35.9", Err(NotEnvoyVersion::TooOld)),
        ("1", Err(NotEnvoyVersion::Shape)),
        ("1.40.0.0", Err(NotEnvoyVersion::Shape)),
        ("v1.40", Err(NotEnvoyVersion::Shape)),
    ];
    for (text, expected) in rows {
        assert_eq!(text.parse(), expected, "{text}");
    }
}

#[test]
fn builds() {
    for (text, version, is_fixed_release) in [
        ("1.40.0", EnvoyVersion(1, 40), true),
        ("1.40", EnvoyVersion(1, 40), true),
        ("1.39.0", EnvoyVersion(1, 39), false),
        ("1.41.0-dev", EnvoyVersion(1, 41), false),
    ] {
        assert_eq!(text.parse(), Ok(EnvoyBuild { version, is_fixed_release }), "{text}");
    }
    assert_eq!("dev".parse::<EnvoyBuild>(), Err(NotEnvoyVersion::Shape));
}
