//! Refusals by NATS itself of a credential of the wrong role or pool, with the configuration that is generated.

use ahma_cluster::{
    Credentials, FrontEnd, Goal, Link, LinkError, LinkSettings, OutputPublisher, Piece, Pool, PoolLimits,
    ReadEnd, Role, RoleKey, SessionRecords, Stage, Tail, account, claim, create, next_job, read_output,
    state,
};
use async_nats::Event;
use futures::{FutureExt as _, StreamExt as _};
use test_support::{Nats, TEST_TIMEOUT};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::pool::request;

struct Accounts {
    nats: Nats,
    directory: tempfile::TempDir,
    keys: Vec<(Pool, RoleKey)>,
}

impl Accounts {
    /// The pools `dev` and `gpu` on one server.
    async fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut keys = Vec::new();
        let mut text = "accounts {\n".to_owned();
        for pool in ["dev", "gpu"] {
            let pool: Pool = pool.parse().unwrap();
            let of_pool: Vec<RoleKey> = Role::ALL.map(|role| RoleKey::new(role).unwrap()).into();
            std::fs::write(
                directory.path().join(format!("{pool}.conf")),
                account(&pool, &of_pool),
            )
            .unwrap();
            text.push_str(&format!("  include \"{pool}.conf\"\n"));
            keys.extend(of_pool.into_iter().map(|key| (pool.clone(), key)));
        }
        text.push_str("}\n");
        let file = directory.path().join("nats.conf");
        std::fs::write(&file, text).unwrap();
        let accounts = Self {
            nats: Nats::start_with(&["-c", file.to_str().unwrap()])?,
            directory,
            keys,
        };
        for pool in ["dev", "gpu"] {
            let operator = accounts.link(pool, Role::Operator).await;
            // The server reserves what is asked for, and disks of test machines are small.
            let limits = PoolLimits {
                output_bytes: 64 << 20,
                ..PoolLimits::default()
            };
            create(&operator, limits).await.unwrap();
        }
        Some(accounts)
    }

    fn seed(&self, pool: &str, role: Role) -> &str {
        let found = self
            .keys
            .iter()
            .find(|(of, key)| of.as_str() == pool && key.role == role);
        &found.unwrap().1.seed
    }

    async fn link(&self, pool: &str, role: Role) -> Link {
        let file = self.directory.path().join(format!("{pool}-{}.nk", role.name()));
        std::fs::write(&file, self.seed(pool, role)).unwrap();
        Link::connect(LinkSettings {
            address: self.nats.address(),
            pool: pool.parse().unwrap(),
            name: role.name().to_owned(),
            credentials: Credentials {
                key_file: Some(file),
                ..Credentials::default()
            },
        })
        .await
        .unwrap()
    }

    async fn intruder(&self, pool: &str, role: Role) -> Intruder {
        let seed = self.seed(pool, role).to_owned();
        let (complaining, complaints) = watch::channel(Vec::new());
        let options = async_nats::ConnectOptions::with_nkey(seed)
            .custom_inbox_prefix(self.inbox(pool, role))
            .event_callback(move |event| {
                if let Event::ServerError(complaint) = event {
                    complaining.send_modify(|all| all.push(complaint.to_string()));
                }
                std::future::ready(())
            });
        Intruder {
            name: format!("the {} of {pool}", role.name()),
            client: options.connect(self.nats.address()).await.unwrap(),
            complaints,
        }
    }

    fn inbox(&self, pool: &str, role: Role) -> String {
        let key = nkeys::KeyPair::from_seed(self.seed(pool, role)).unwrap();
        format!("_INBOX_{}", key.public_key())
    }
}

/// Has a valid credential, and tries what is not for it.
struct Intruder {
    name: String,
    client: async_nats::Client,
    /// Complaints of the server about this connection.
    complaints: watch::Receiver<Vec<String>>,
}

impl Intruder {
    async fn may_not_publish(&self, subject: &str, text: &str) {
        let published = self.client.publish(subject.to_owned(), text.to_owned().into());
        published.await.unwrap();
        self.is_told(&format!("Permissions Violation for Publish to \"{subject}\""))
            .await;
    }

    async fn may_not_listen(&self, subject: &str) {
        let mut heard = self.client.subscribe(subject.to_owned()).await.unwrap();
        self.is_told(&format!(
            "Permissions Violation for Subscription to \"{subject}\""
        ))
        .await;
        let nothing = heard.next().now_or_never().flatten();
        assert!(nothing.is_none(), "{}: {nothing:?}", self.name);
    }

    /// Waits for a complaint: what was only lost, or went to nobody, is not refused.
    async fn is_told(&self, expected: &str) {
        let mut complaints = self.complaints.clone();
        let told = complaints.wait_for(|all| all.iter().any(|complaint| complaint.contains(expected)));
        let told = tokio::time::timeout(TEST_TIMEOUT, told).await;
        assert!(told.is_ok(), "{} was not told: {expected}", self.name);
    }
}

#[tokio::test]
async fn each_role_can_do_its_work() {
    let Some(accounts) = Accounts::start().await else {
        return;
    };
    let front_link = accounts.link("dev", Role::FrontEnd).await;
    let tail = Tail::start(front_link.clone(), CancellationToken::new());
    let sessions = SessionRecords::new(front_link.clone());
    sessions.write("session", "{}".into(), None).await.unwrap();
    assert_eq!(sessions.read("session").await.unwrap().unwrap().data, "{}");
    let front = FrontEnd::new(front_link.clone(), tail.clone(), None);
    let request = request();
    front.submit(&request, false).await.unwrap();
    let worker = accounts.link("dev", Role::Worker).await;
    let delivery = next_job(&worker).await.unwrap();
    let claimed = claim(&worker, &delivery.job, "w1").await.unwrap();
    delivery.done(&worker).await;
    let place = (request.owner.as_str(), request.operation.as_str(), 1);
    let (goal, wanted) = watch::channel(Goal::Open);
    let read = tokio::spawn({
        let (owner, operation) = (request.owner.clone(), request.operation.clone());
        async move {
            let mut text = Vec::new();
            let sink = |piece| {
                if let Piece::Output(bytes) = piece {
                    text.extend_from_slice(&bytes);
                }
            };
            let end = read_output(&front_link, (&owner, &operation, 1), wanted, sink).await;
            (end, text)
        }
    });
    let mut publisher = OutputPublisher::new(worker.clone(), place.0, place.1, place.2);
    publisher.output(bytes::Bytes::from_static(b"text")).await;
    publisher.finish().await.unwrap();
    claimed.report("completed", (4, 0), serde_json::Value::Null).await;
    goal.send_replace(Goal::Ended {
        bytes: 4,
        findings: 0,
    });
    assert_eq!(read.await.unwrap(), (Ok(ReadEnd::Whole), b"text".to_vec()));
    tail.synced().await.unwrap();
    assert!(tail.entry(&request.operation).unwrap().folded.has_ended());
}

#[tokio::test]
async fn nats_refuses_what_is_of_another_role_or_pool() {
    let Some(accounts) = Accounts::start().await else {
        return;
    };
    let link = accounts.link("dev", Role::FrontEnd).await;
    let tail = Tail::start(link.clone(), CancellationToken::new());
    let request = request();
    let front = FrontEnd::new(link, tail.clone(), None);
    front.submit(&request, false).await.unwrap();

    let operation = format!("ahma.op.dev.{}.{}", request.owner, request.operation);
    let output = format!("ahma.out.dev.{}.{}.1", request.owner, request.operation);
    let next_output = format!("{{\"seq\":1,\"next_by_subj\":\"{output}\"}}");
    let asks = "$JS.API.CONSUMER.MSG.NEXT.AHMA_DEV_JOBS.workers";
    let (first, one) = ("{\"seq\":1}", "{\"batch\":1,\"no_wait\":true}");
    let inbox = |role| format!("{}.>", accounts.inbox("dev", role));
    let (front_inbox, worker_inbox) = (inbox(Role::FrontEnd), inbox(Role::Worker));
    let (output, operation, next_output) = (&*output, &*operation, &*next_output);
    let attempts = [
        // A worker runs what it is given. It cannot ask, look around, or stop what others run.
        Attempts {
            by: ("dev", Role::Worker),
            publishes: &[
                ("ahma.job.dev.op_x", "{}"),
                ("ahma.ctl.dev.w1", "{}"),
                ("ahma.ses.dev.x", "{}"),
                ("$JS.API.DIRECT.GET.AHMA_DEV_OUT", next_output),
                ("$JS.API.STREAM.MSG.GET.AHMA_DEV_JOBS", first),
                ("$JS.API.STREAM.MSG.GET.AHMA_DEV_SESSIONS", first),
                ("$JS.API.STREAM.DELETE.AHMA_DEV_OPS", ""),
                ("$JS.API.STREAM.PURGE.AHMA_DEV_OPS", ""),
                ("$JS.API.CONSUMER.CREATE.AHMA_DEV_OPS", "{}"),
                ("$JS.API.STREAM.NAMES", ""),
            ],
            listens: &["ahma.out.dev.>", &front_inbox],
        },
        // A front end asks. It cannot act as a worker, or change the streams.
        Attempts {
            by: ("dev", Role::FrontEnd),
            publishes: &[
                (output, "forged"),
                ("ahma.hb.dev.w1", "{}"),
                (asks, one),
                ("$JS.ACK.AHMA_DEV_JOBS.workers.1.1.1.1.0", "+ACK"),
                ("$JS.API.STREAM.DELETE.AHMA_DEV_JOBS", ""),
                ("$JS.API.STREAM.PURGE.AHMA_DEV_OPS", ""),
                ("$JS.API.STREAM.UPDATE.AHMA_DEV_OPS", "{}"),
            ],
            listens: &["ahma.ctl.dev.>", &worker_inbox],
        },
        // An operator makes the streams. It can neither ask nor run anything.
        Attempts {
            by: ("dev", Role::Operator),
            publishes: &[
                (operation, "{}"),
                (output, "forged"),
                ("ahma.job.dev.op_x", "{}"),
                ("ahma.ctl.dev.w1", "{}"),
                (asks, one),
                ("$JS.API.DIRECT.GET.AHMA_DEV_OUT", next_output),
                ("$JS.API.STREAM.DELETE.AHMA_DEV_OPS", ""),
            ],
            listens: &["ahma.out.dev.>", &front_inbox],
        },
        // Another pool is another account, and its permissions do not name this one either.
        Attempts {
            by: ("gpu", Role::Worker),
            publishes: &[
                (operation, "{}"),
                (output, "forged"),
                ("ahma.hb.dev.w1", "{}"),
                (asks, one),
                ("$JS.API.STREAM.MSG.GET.AHMA_DEV_OPS", first),
            ],
            listens: &["ahma.ctl.dev.>", "ahma.out.dev.>"],
        },
        Attempts {
            by: ("gpu", Role::FrontEnd),
            publishes: &[
                (operation, "{}"),
                ("ahma.job.dev.op_x", "{}"),
                ("ahma.ctl.dev.w1", "{}"),
                ("$JS.API.DIRECT.GET.AHMA_DEV_OUT", next_output),
                ("$JS.API.STREAM.MSG.GET.AHMA_DEV_SESSIONS", first),
                ("$JS.API.STREAM.INFO.AHMA_DEV_OPS", ""),
            ],
            listens: &["ahma.hb.dev.*", "ahma.out.dev.>", &front_inbox],
        },
    ];
    for Attempts {
        by: (pool, role),
        publishes,
        listens,
    } in attempts
    {
        let intruder = accounts.intruder(pool, role).await;
        for (subject, text) in publishes {
            intruder.may_not_publish(subject, text).await;
        }
        let everything = [">", "ahma.>", "ahma.op.dev.>", "ahma.job.dev.>", "_INBOX.>"];
        for subject in listens.iter().chain(&everything) {
            intruder.may_not_listen(subject).await;
        }
    }
    let refused = next_job(&accounts.link("dev", Role::FrontEnd).await).await;
    let denied = LinkError::Denied {
        subject: asks.to_owned(),
    };
    assert_eq!(refused.err(), Some(denied));
    // None of it had an effect.
    tail.synced().await.unwrap();
    let entries = tail.open_entries();
    let names: Vec<&str> = entries.iter().map(|entry| entry.operation.as_str()).collect();
    assert_eq!(names, [&request.operation]);
    assert_eq!(entries[0].folded.stage, Stage::Queued { attempt: 1 });
    let state = state(&accounts.link("dev", Role::Operator).await).await.unwrap();
    assert_eq!((state.operations.messages, state.jobs.messages), (1, 1));
}

/// What the holder of a key tries beyond its role.
struct Attempts<'a> {
    by: (&'a str, Role),
    /// Subjects and messages.
    publishes: &'a [(&'a str, &'a str)],
    listens: &'a [&'a str],
}
