use super::*;

fn request() -> Request {
    Request {
        pool: "dev".to_owned(),
        operation: "op_1".to_owned(),
        owner: "anna".to_owned(),
        tool: "echo".to_owned(),
        issued_at: 1_000_000,
        ..Request::default()
    }
}

#[test]
fn a_worker_takes_only_what_was_meant_for_it() {
    let (known, other) = (KeyPair::new_user(), KeyPair::new_user());
    let keys = RequestKeys::new(vec![known.public_key()]);
    let (known, other) = (Signer(known), Signer(other));
    let pool: Pool = "dev".parse().unwrap();
    let check = |signed: &SignedRequest, place, now| signed.verified(&keys, &pool, place, now).err();

    let signed = request().sign(Some(&known));
    assert_eq!(check(&signed, ("anna", "op_1"), 1_000_000), None);
    let misdirected = Some(BadRequest::Misdirected);
    assert_eq!(check(&signed, ("anna", "op_2"), 1_000_000), misdirected);
    assert_eq!(check(&signed, ("bert", "op_1"), 1_000_000), misdirected);
    assert_eq!(
        check(&signed, ("anna", "op_1"), 1_003_901),
        Some(BadRequest::TooOld(3_901))
    );
    let elsewhere = Request {
        pool: "gpu".to_owned(),
        ..request()
    };
    assert_eq!(
        check(&elsewhere.sign(Some(&known)), ("anna", "op_1"), 1_000_000),
        misdirected
    );

    let unknown = Some(BadRequest::UnknownSigner);
    assert_eq!(
        check(&request().sign(Some(&other)), ("anna", "op_1"), 1_000_000),
        unknown
    );
    assert_eq!(
        check(&request().sign(None), ("anna", "op_1"), 1_000_000),
        Some(BadRequest::Unsigned)
    );
    let changed = SignedRequest {
        request: signed.request.replace("echo", "curl"),
        ..signed
    };
    assert_eq!(check(&changed, ("anna", "op_1"), 1_000_000), unknown);
}
