use super::*;

#[test]
fn variables_choose_the_kind_of_key() {
    for (variables, expected) in [
        (vec![], Ok(KeyKind::Rsa2048)),
        (vec![("WORKLOAD_RSA_KEY_SIZE", "4096")], Ok(KeyKind::Rsa4096)),
        (vec![("WORKLOAD_RSA_KEY_SIZE", "many")], Ok(KeyKind::Rsa2048)),
        (vec![("WORKLOAD_RSA_KEY_SIZE", "1024")], Err(UnsupportedKey::RsaSize("1024".to_owned()))),
        (vec![("ECC_CURVE", "P384")], Ok(KeyKind::Rsa2048)),
        (vec![("ECC_SIGNATURE_ALGORITHM", "ECDSA")], Ok(KeyKind::EcdsaP256)),
        (vec![("ECC_SIGNATURE_ALGORITHM", "ECDSA"), ("ECC_CURVE", "P521")], Ok(KeyKind::EcdsaP256)),
        (vec![("ECC_SIGNATURE_ALGORITHM", "ECDSA"), ("ECC_CURVE", "P384")], Ok(KeyKind::EcdsaP384)),
        (
            vec![("ECC_SIGNATURE_ALGORITHM", "ed25519")],
            Err(UnsupportedKey::SignatureAlgorithm("ed25519".to_owned())),
        ),
    ] {
        let variable = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        assert_eq!(KeyKind::from_variables(variable), expected, "{variables:?}");
    }
}
