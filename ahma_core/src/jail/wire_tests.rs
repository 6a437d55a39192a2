use super::*;

/// An owner that ends just as it is told to stop: its last words count.
#[test]
fn what_was_sent_before_the_end_is_heard_although_an_order_was_not() {
    for blocking in [true, false] {
        let (server, owner) = pair().unwrap();
        rustix::io::ioctl_fionbio(&server, !blocking).unwrap();
        send(&server, &Order::Stop { grace_ms: 0 }, &[]).unwrap();
        let last_words = Report::Gone { exited: None };
        send(&owner, &last_words, &[]).unwrap();
        drop(owner);

        let (report, _) = receive_short::<Report>(&server).unwrap().unwrap();
        assert_eq!(report, last_words);
        // A process that another test just forks may hold the other side a little longer.
        rustix::io::ioctl_fionbio(&server, false).unwrap();
        assert!(receive_short::<Report>(&server).unwrap().is_none());
    }
}

#[test]
fn an_end_without_a_word_is_an_end_and_no_error() {
    let (server, owner) = pair().unwrap();
    send(&server, &Order::Stop { grace_ms: 0 }, &[]).unwrap();
    drop(owner);
    assert!(receive_short::<Report>(&server).unwrap().is_none());
}

#[test]
fn a_message_may_be_longer_than_a_socket_takes() {
    let (server, jail) = pair().unwrap();
    for length in [1, MAX_MESSAGE, 8 * MAX_MESSAGE] {
        let message = "x".repeat(length);
        send(&server, &message, &[server.as_fd()]).unwrap();
        let (received, fds) = receive::<String>(&jail).unwrap().unwrap();
        assert!(received == message, "{length}");
        assert_eq!(fds.len(), 1, "{length}");
    }
}
