use super::*;

#[tokio::test(start_paused = true)]
async fn a_postponed_sandbox_is_set_up_for_whoever_stays_or_needs_it() {
    let (client_gone, needed) = (CancellationToken::new(), Notify::new());
    assert!(!is_gone_unasked(&client_gone, &needed).await, "it stays");
    client_gone.cancel();
    assert!(is_gone_unasked(&client_gone, &needed).await);
    needed.notify_one();
    assert!(
        !is_gone_unasked(&client_gone, &needed).await,
        "what it asked for is still to be answered"
    );
}
