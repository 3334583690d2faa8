use super::*;

#[test]
fn servers_and_search_domains_are_read() {
    let text = "# made by kubelet\nnameserver 10.96.0.10\nnameserver fd00::10 ; second\n\
        nameserver fe80::1%eth0\nnameserver\ndomain old\nsearch shop.svc.cluster.local svc.cluster.local\noptions ndots:5\n";
    let found = parse(text);
    let servers: Vec<IpAddr> = ["10.96.0.10", "fd00::10"].map(|ip| ip.parse().unwrap()).into();
    assert_eq!(found.servers, servers);
    assert_eq!(found.search, ["shop.svc.cluster.local", "svc.cluster.local"]);
    assert_eq!(parse(""), ResolvConf::default());
}
