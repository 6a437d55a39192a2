//! Records of sessions, as two front ends have them.

use ahma_cluster::SessionRecords;

use crate::pool::TestPool;

#[tokio::test]
async fn the_newest_record_is_replaced_by_one_who_knows_it() {
    let Some(pool) = TestPool::start().await else {
        return;
    };
    let one = SessionRecords::new(pool.link("one").await);
    let two = SessionRecords::new(pool.link("two").await);
    assert_eq!(two.read("s").await.unwrap(), None);
    let first = one.write("s", "first".into(), None).await.unwrap().unwrap();
    assert_eq!(two.write("s", "mine".into(), None).await.unwrap(), None);
    let second = two
        .write("s", "second".into(), Some(first))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(one.write("s", "late".into(), Some(first)).await.unwrap(), None);
    let found = one.read("s").await.unwrap().unwrap();
    assert_eq!((&found.data[..], found.revision), (&b"second"[..], second));

    one.remove("s").await.unwrap();
    assert_eq!(two.read("s").await.unwrap(), None);
    for known in [Some(second), None] {
        assert_eq!(two.write("s", "again".into(), known).await.unwrap(), None);
    }
}
