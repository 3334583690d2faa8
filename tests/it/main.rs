//! The one integration binary: a module for each thing that is tested.

mod e2e;
mod e2e_body;
mod e2e_grpc;
mod e2e_http;
mod e2e_redirect;
mod e2e_tcp;
mod e2e_tls;
mod harness;
