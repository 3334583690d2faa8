//! Tests of listeners and routes in both variants.

use super::*;

#[test]
fn without_outbound_listeners_the_set_is_empty() {
    let unknown = |name: &str| format!("UnknownType(\"type.googleapis.com/envoy.config.{name}\")");
    let listeners = unknown("listener.v3.Listener");
    let routes = unknown("route.v3.RouteConfiguration");
    for variant in [Variant::Sotw, Variant::Delta] {
        let removed = if variant == Variant::Delta { " -80" } else { "" };
        check(
            variant,
            &[
                ("serve a:1", ""),
                ("LDS", &format!("{listeners}; LDS#1")),
                ("RDS rds80", &format!("{routes}; RDS#2{removed}")),
                ("LDS nonce=1", ""),
                ("serve a:1 b@81:1", ""),
            ],
        );
    }
}

#[test]
fn listeners_and_routes_follow_the_services_sotw() {
    check(
        Variant::Sotw,
        &[
            ("serve outbound a:1", ""),
            ("LDS", "LDS#1 127.0.0.1_80"),
            ("RDS rds80", "RDS#2 80"),
            ("LDS nonce=1", ""),
            ("RDS rds80 nonce=2", ""),
            ("@1000", ""),
            // Endpoints change neither.
            ("serve outbound a:2", ""),
            // A response contains all listeners, but only the changed routes.
            ("serve outbound a:1 b@81:1", "LDS#3 127.0.0.1_80 127.0.0.1_81"),
            ("LDS nonce=3", ""),
            ("RDS rds80,rds81 nonce=2", "RDS#4 81"),
            ("RDS rds80,rds81 nonce=4", ""),
            ("@2000", ""),
            ("serve outbound a:1 b@81:1 c:1", "RDS#5 80"),
            ("RDS rds80,rds81 nonce=5", ""),
            ("@3000", ""),
            // A connection that is still open needs its route configuration; it is empty now.
            ("serve outbound a:1 c:1", "LDS#6 127.0.0.1_80; RDS#7 81"),
            ("LDS nonce=6", ""),
            ("RDS rds80 nonce=7", ""),
            ("@4000", ""),
            ("serve outbound", "LDS#8; RDS#9 80"),
        ],
    );
}

#[test]
fn listeners_and_routes_follow_the_services_delta() {
    check(
        Variant::Delta,
        &[
            ("serve outbound a:1", ""),
            ("LDS", "LDS#1 127.0.0.1_80"),
            ("RDS rds80,rds99", "RDS#2 80 99"),
            ("LDS nonce=1", ""),
            ("RDS nonce=2", ""),
            ("@1000", ""),
            ("serve outbound a:2", ""),
            ("serve outbound a:1 b@81:1", "LDS#3 127.0.0.1_81"),
            ("LDS nonce=3", ""),
            ("RDS rds81 -rds99", "RDS#4 81"),
            ("RDS nonce=4", ""),
            ("@2000", ""),
            ("serve outbound a:1", "LDS#5 -127.0.0.1_81; RDS#6 81"),
        ],
    );
}

/// Requests of a new listener must not fail because Envoy does not know the cluster yet.
#[test]
fn listeners_and_routes_wait_for_clusters() {
    for variant in [Variant::Sotw, Variant::Delta] {
        let sotw = variant == Variant::Sotw;
        let acknowledged = if sotw { "RDS rds80 nonce=3" } else { "RDS nonce=3" };
        let (clusters, listeners) = if sotw {
            ("CDS#4 a outbound|81||b", "LDS#5 127.0.0.1_80 127.0.0.1_81")
        } else {
            ("CDS#4 outbound|81||b", "LDS#5 127.0.0.1_81")
        };
        check(
            variant,
            &[
                ("serve outbound a:1", ""),
                ("CDS", "CDS#1 a"),
                ("LDS", ""),
                ("CDS nonce=1", "LDS#2 127.0.0.1_80"),
                ("LDS nonce=2", ""),
                ("RDS rds80", "RDS#3 80"),
                (acknowledged, ""),
                // The push of clusters is delayed.
                ("serve outbound a:1 b@81:1", ""),
                ("@100", clusters),
                ("CDS nonce=4", listeners),
            ],
        );
    }
}
