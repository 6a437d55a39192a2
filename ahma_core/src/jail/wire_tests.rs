//! Both transports, each with the same tests.

macro_rules! transport_tests {
    ($transport:ident) => {
        mod $transport {
            use std::os::fd::AsFd as _;

            use crate::jail::{
                wire::{Instruction, Report},
                $transport::{pair, receive, receive_short, send},
            };

            /// A supervisor that ends just as it is told to stop.
            #[test]
            fn the_last_report_arrives_although_an_instruction_was_not_read() {
                for blocking in [true, false] {
                    let (server, supervisor) = pair().unwrap();
                    rustix::io::ioctl_fionbio(&server, !blocking).unwrap();
                    send(
                        &server,
                        &Instruction::Stop {
                            signal: libc::SIGTERM,
                            grace_ms: 0,
                        },
                        &[],
                    )
                    .unwrap();
                    let last_report = Report::Gone { exited: None };
                    send(&supervisor, &last_report, &[]).unwrap();
                    drop(supervisor);

                    let (report, _) = receive_short::<Report>(&server).unwrap().unwrap();
                    assert_eq!(report, last_report);
                    // A process that another test just forks may hold the other side a little longer.
                    rustix::io::ioctl_fionbio(&server, false).unwrap();
                    assert!(receive_short::<Report>(&server).unwrap().is_none());
                }
            }

            #[test]
            fn an_end_without_a_word_is_an_end_and_no_error() {
                let (server, supervisor) = pair().unwrap();
                send(
                    &server,
                    &Instruction::Stop {
                        signal: libc::SIGTERM,
                        grace_ms: 0,
                    },
                    &[],
                )
                .unwrap();
                drop(supervisor);
                assert!(receive_short::<Report>(&server).unwrap().is_none());
            }

            #[test]
            fn a_message_may_be_longer_than_a_socket_takes() {
                let (server, jail) = pair().unwrap();
                for length in [1, 160 * 1024, 1280 * 1024] {
                    let message = "x".repeat(length);
                    let (received, fds) = std::thread::scope(|scope| {
                        scope.spawn(|| send(&server, &message, &[server.as_fd()]).unwrap());
                        receive::<String>(&jail).unwrap().unwrap()
                    });
                    assert!(received == message, "{length}");
                    assert_eq!(fds.len(), 1, "{length}");
                }
            }
        }
    };
}

#[cfg(target_os = "linux")]
transport_tests!(wire_packets);
transport_tests!(wire_stream);
