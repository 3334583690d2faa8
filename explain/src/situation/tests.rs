use super::*;

#[test]
fn responses_of_the_api_server_and_of_the_pod() {
    let status = |code: u16, message: &str| {
        serde_json::json!({"kind": "Status", "apiVersion": "v1", "code": code, "message": message})
            .to_string()
    };
    let refused = "dial tcp 10.0.0.7:15020: connect: connection refused";
    let response = |status, body: &str| ProbeResult::Response { status, body: body.to_owned() };
    let cases = [
        (200, String::new(), response(200, "")),
        (502, "refused: nothing listens".to_owned(), response(502, "refused: nothing listens")),
        (403, String::new(), response(403, "")),
        (403, status(403, "pods \"web\" is forbidden"), ProbeResult::Forbidden),
        (
            503,
            status(503, &format!("error trying to reach service: {refused}")),
            ProbeResult::Unreachable(refused.to_owned()),
        ),
        (
            503,
            format!("Error trying to reach service: '{refused}'"),
            ProbeResult::Unreachable(refused.to_owned()),
        ),
        (
            404,
            status(404, "pods \"web\" not found"),
            ProbeResult::Failed("404: pods \"web\" not found".to_owned()),
        ),
        (500, "{\"kind\": \"Mine\"}".to_owned(), response(500, "{\"kind\": \"Mine\"}")),
    ];
    for (code, body, expected) in cases {
        assert_eq!(ProbeResult::of_response(code, &body), expected, "{code} {body}");
    }
}
