use kube::Client;

use super::*;

/// Returns a renewer whose leaf was created at `created_at`, with an API server that accepts no
/// connections.
fn renewer(created_at: OffsetDateTime) -> (Renewer, watch::Receiver<Arc<ServerConfig>>) {
    let _ = tls::install_crypto();
    let client = Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let own = SelfSigned { names: vec!["webhook".to_owned()], client_ca: None, client_name: None };
    let authority = Authority::new(created_at).unwrap();
    let leaf = authority.leaf(&own.names, created_at).unwrap();
    let metrics = Arc::new(Metrics::default());
    let first = config(&content(&leaf, None), None, &metrics).unwrap();
    let (tls, receiver) = watch::channel(Arc::new(first));
    let renewer = Renewer {
        cluster: ApiClient::new(client, "app-health-system", "app-health".to_owned()),
        own,
        client_ca: None,
        changed_client_ca: None,
        tls,
        metrics,
        pending: Pending::new([CA_BUNDLE]),
        signer: authority.current.certificate.clone(),
        authority,
        leaf,
        published_bundle: None,
    };
    (renewer, receiver)
}

#[tokio::test]
async fn a_leaf_is_renewed_without_the_api_server() {
    let (mut renewer, receiver) = renewer(now() - LEAF_VALIDITY);
    let before = renewer.leaf.clone();
    renewer.step().await.expect_err("the API server is not reachable");
    assert!(renewer.leaf != before && receiver.has_changed().unwrap());
    assert_eq!(renewer.pending.reasons(), [CA_BUNDLE]);
    let renewed = renewer.leaf.clone();
    renewer.step().await.expect_err("the API server is not reachable");
    assert_eq!(renewer.leaf, renewed, "renewed once");
}

#[tokio::test]
async fn a_changed_client_ca_is_used_unless_it_is_invalid() {
    let (mut renewer, receiver) = renewer(now());
    let ca = Pem::new("--client-ca", renewer.authority.current.certificate.clone());
    renewer.reload_client_ca(Err("not readable".to_owned()));
    renewer.reload_client_ca(Ok(Pem::new("--client-ca", "no PEM")));
    assert!(!receiver.has_changed().unwrap());
    renewer.reload_client_ca(Ok(ca));
    assert!(receiver.has_changed().unwrap() && renewer.client_ca.is_some());
    let text = renewer.metrics.text();
    assert!(text.contains("reloads_total{kind=\"certificate\",result=\"failure\"} 2"), "{text}");
    assert!(text.contains("reloads_total{kind=\"certificate\",result=\"success\"} 1"), "{text}");
}
