use super::*;

#[test]
fn pools_are_single_words_of_a_subject() {
    for good in ["dev", "gpu-2", "a"] {
        assert_eq!(good.parse::<Pool>().unwrap().as_str(), good);
    }
    let long = "a".repeat(33);
    for bad in ["", "Dev", "a.b", "a b", "*", ">", "a_b", long.as_str(), "ü"] {
        assert_eq!(bad.parse::<Pool>(), Err(BadPool(bad.to_owned())), "{bad}");
    }
}

#[test]
fn subjects_of_the_log_are_read_back() {
    let pool: Pool = "dev".parse().unwrap();
    let owner = owner_of(Some("anna"));
    let subject = pool.operation_subject(&owner, "op_1");
    assert_eq!(
        parts_of_operation_subject(&subject),
        Some((owner.as_str(), "op_1"))
    );
    assert_eq!(parts_of_operation_subject("ahma.job.dev.op_1"), None);
}

#[test]
fn owners_differ_and_the_local_user_is_nobody_else() {
    let owners = [
        owner_of(None),
        owner_of(Some("")),
        owner_of(Some("anna")),
        owner_of(Some("bert")),
    ];
    for (index, owner) in owners.iter().enumerate() {
        assert_eq!(owner.len(), OWNER_CHARACTERS);
        assert!(!owners[..index].contains(owner), "{owner}");
    }
}
