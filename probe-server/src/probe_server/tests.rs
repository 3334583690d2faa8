use probe::Reason;
use prober::Ended;

use super::{Answer, answer};

#[test]
fn answers_to_probes_and_hooks() {
    let result = |status, reason| Ended::Result { status, reason };
    for (ended, probe, hook) in [
        (result(204, Reason::Ok), Answer::Status(204), Answer::Status(204)),
        (result(503, Reason::Application), Answer::Status(503), Answer::Status(503)),
        (
            Ended::by(Reason::OkRedirect),
            Answer::Reason(Reason::OkRedirect),
            Answer::Reason(Reason::OkRedirect),
        ),
        (Ended::by(Reason::Refused), Answer::Reason(Reason::Refused), Answer::Reset),
        (Ended::by(Reason::Timeout), Answer::Reason(Reason::Timeout), Answer::Reset),
        (Ended::BrokenBody { status: 200, reason: Reason::Ok }, Answer::Broken(200), Answer::Status(200)),
        (Ended::BrokenBody { status: 204, reason: Reason::Ok }, Answer::Broken(200), Answer::Status(204)),
    ] {
        assert_eq!((answer(ended, false), answer(ended, true)), (probe, hook), "{ended:?}");
    }
}
