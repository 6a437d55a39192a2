//! Answers worth compressing: large JSON. Never an event stream, whose events must not wait for
//! the compressor's next block.

use http::Response;
use http::header::CONTENT_TYPE;
use http_body::Body;
use tower_http::compression::predicate::Predicate;

const WORTH_IT_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Copy)]
pub(crate) struct LargeJson;

impl Predicate for LargeJson {
    fn should_compress<B: Body>(&self, response: &Response<B>) -> bool {
        let is_json = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|media| media == "application/json");
        is_json && response.body().size_hint().lower() > WORTH_IT_BYTES
    }
}
