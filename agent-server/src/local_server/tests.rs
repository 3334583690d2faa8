use super::*;
use hyper::header::HOST;
