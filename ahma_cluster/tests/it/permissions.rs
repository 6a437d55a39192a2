//! Refusals by NATS itself of a credential of the wrong role or pool, with the configuration that is generated.

use std::time::Duration;

use ahma_cluster::{
    Credentials, FrontEnd, Link, LinkSettings, Pool, PoolLimits, Role, RoleKey, SessionRecords, Tail,
    account, claim, create, next_job,
};
use futures::StreamExt as _;
use test_support::Nats;
use tokio_util::sync::CancellationToken;

use crate::pool::request;

struct Accounts {
    nats: Nats,
    directory: tempfile::TempDir,
    keys: Vec<(Pool, RoleKey)>,
}

impl Accounts {
    /// The pools `dev` and `gpu` on one server.
    fn start() -> Option<Self> {
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
        let nats = Nats::start_with(&["-c", file.to_str().unwrap()])?;
        Some(Self {
            nats,
            directory,
            keys,
        })
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

    async fn client(&self, pool: &str, role: Role) -> async_nats::Client {
        let seed = self.seed(pool, role).to_owned();
        let inbox = format!(
            "_INBOX_{}",
            nkeys::KeyPair::from_seed(&seed).unwrap().public_key()
        );
        let options = async_nats::ConnectOptions::with_nkey(seed).custom_inbox_prefix(inbox);
        options.connect(self.nats.address()).await.unwrap()
    }
}

/// Time in which a request that is allowed is answered many times over.
const PATIENCE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn each_role_can_do_its_work_and_nothing_else() {
    let Some(accounts) = Accounts::start() else { return };
    for pool in ["dev", "gpu"] {
        create(
            &accounts.link(pool, Role::Operator).await,
            PoolLimits {
                output_bytes: 64 << 20,
                ..PoolLimits::default()
            },
        )
        .await
        .unwrap();
    }
    // The whole way of an operation.
    let front_link = accounts.link("dev", Role::FrontEnd).await;
    let tail = Tail::start(front_link.clone(), CancellationToken::new());
    let sessions = SessionRecords::new(front_link.clone());
    sessions.write("session", "{}".into(), None).await.unwrap();
    assert_eq!(sessions.read("session").await.unwrap().unwrap().data, "{}");
    let front = FrontEnd::new(front_link, tail.clone(), None);
    let request = request();
    front.submit(&request, false).await.unwrap();
    let worker = accounts.link("dev", Role::Worker).await;
    let delivery = next_job(&worker).await;
    let claimed = claim(&worker, &delivery.job, "w1").await.unwrap();
    delivery.done(&worker).await;
    let mut publisher =
        ahma_cluster::OutputPublisher::new(worker.clone(), &request.owner, &request.operation, 1);
    publisher.output(bytes::Bytes::from_static(b"text")).await;
    publisher.finish().await.unwrap();
    claimed.report("completed", (4, 0), serde_json::Value::Null).await;
    tail.synced().await.unwrap();
    assert!(tail.entry(&request.operation).unwrap().folded.has_ended());

    let (worker, front) = (
        accounts.client("dev", Role::Worker).await,
        accounts.client("dev", Role::FrontEnd).await,
    );
    let (other_worker, other_front) = (
        accounts.client("gpu", Role::Worker).await,
        accounts.client("gpu", Role::FrontEnd).await,
    );
    let operation = format!("ahma.op.dev.{}.{}", request.owner, request.operation);
    let output = format!("ahma.out.dev.{}.{}.1", request.owner, request.operation);
    let next_output = format!("{{\"seq\":1,\"next_by_subj\":\"{output}\"}}");
    let attempts: Vec<(&str, &async_nats::Client, String, String)> = vec![
        (
            "a worker queues a job",
            &worker,
            "ahma.job.dev.op_x".into(),
            "{}".into(),
        ),
        ("a worker cancels", &worker, "ahma.ctl.dev.w1".into(), "{}".into()),
        (
            "a worker reads output",
            &worker,
            "$JS.API.DIRECT.GET.AHMA_DEV_OUT".into(),
            next_output.clone(),
        ),
        (
            "a worker reads stored jobs",
            &worker,
            "$JS.API.STREAM.MSG.GET.AHMA_DEV_JOBS".into(),
            "{\"seq\":1}".into(),
        ),
        (
            "a worker deletes the log",
            &worker,
            "$JS.API.STREAM.DELETE.AHMA_DEV_OPS".into(),
            String::new(),
        ),
        (
            "a worker purges the log",
            &worker,
            "$JS.API.STREAM.PURGE.AHMA_DEV_OPS".into(),
            String::new(),
        ),
        (
            "a worker makes a consumer",
            &worker,
            "$JS.API.CONSUMER.CREATE.AHMA_DEV_OPS".into(),
            "{}".into(),
        ),
        (
            "a worker lists streams",
            &worker,
            "$JS.API.STREAM.NAMES".into(),
            String::new(),
        ),
        (
            "a worker reads sessions",
            &worker,
            "$JS.API.STREAM.MSG.GET.AHMA_DEV_SESSIONS".into(),
            "{\"seq\":1}".into(),
        ),
        (
            "a worker writes a session",
            &worker,
            "ahma.ses.dev.x".into(),
            "{}".into(),
        ),
        ("a front end publishes output", &front, output.clone(), "x".into()),
        ("a front end beats", &front, "ahma.hb.dev.w1".into(), "{}".into()),
        (
            "a front end takes a job",
            &front,
            "$JS.API.CONSUMER.MSG.NEXT.AHMA_DEV_JOBS.workers".into(),
            "{\"batch\":1,\"no_wait\":true}".into(),
        ),
        (
            "a front end deletes the queue",
            &front,
            "$JS.API.STREAM.DELETE.AHMA_DEV_JOBS".into(),
            String::new(),
        ),
        (
            "a front end changes a stream",
            &front,
            "$JS.API.STREAM.UPDATE.AHMA_DEV_OPS".into(),
            "{}".into(),
        ),
        (
            "another pool's worker appends",
            &other_worker,
            operation.clone(),
            "{}".into(),
        ),
        (
            "another pool's worker takes a job",
            &other_worker,
            "$JS.API.CONSUMER.MSG.NEXT.AHMA_DEV_JOBS.workers".into(),
            "{\"batch\":1,\"no_wait\":true}".into(),
        ),
        (
            "another pool's worker reads the log",
            &other_worker,
            "$JS.API.STREAM.MSG.GET.AHMA_DEV_OPS".into(),
            "{\"seq\":1}".into(),
        ),
        (
            "another pool's front end appends",
            &other_front,
            operation,
            "{}".into(),
        ),
        (
            "another pool's front end queues",
            &other_front,
            "ahma.job.dev.op_x".into(),
            "{}".into(),
        ),
        (
            "another pool's front end reads output",
            &other_front,
            "$JS.API.DIRECT.GET.AHMA_DEV_OUT".into(),
            next_output,
        ),
        (
            "another pool's front end reads sessions",
            &other_front,
            "$JS.API.STREAM.MSG.GET.AHMA_DEV_SESSIONS".into(),
            "{\"seq\":1}".into(),
        ),
        (
            "another pool's front end looks",
            &other_front,
            "$JS.API.STREAM.INFO.AHMA_DEV_OPS".into(),
            String::new(),
        ),
    ];
    assert_eq!(attempts.len(), 23);
    let tries = attempts
        .into_iter()
        .map(|(what, client, subject, text)| async move {
            let answered = tokio::time::timeout(PATIENCE, client.request(subject, text.into())).await;
            assert!(!matches!(answered, Ok(Ok(_))), "{what}: {answered:?}");
        });
    futures::future::join_all(tries).await;

    // Listening: only the front end of `dev` hears what is meant for it.
    let mut ears = Vec::new();
    for (client, subject) in [
        (&worker, "ahma.out.dev.>"),
        (&worker, "_INBOX_>"),
        (&other_front, "ahma.out.dev.>"),
        (&other_worker, "ahma.out.dev.>"),
    ] {
        ears.push(client.subscribe(subject).await.unwrap());
        client.flush().await.unwrap();
    }
    let mut heard = front.subscribe("ahma.out.dev.>").await.unwrap();
    // Connections are served in any order: the first words may be too early.
    let told = loop {
        let word = worker.publish("ahma.out.dev.anna.op_y.1", "told".into());
        word.await.unwrap();
        if let Ok(told) = tokio::time::timeout(Duration::from_millis(100), heard.next()).await {
            break told;
        }
    };
    assert_eq!(told.unwrap().payload, "told");
    for ear in &mut ears {
        let nothing = tokio::time::timeout(Duration::from_millis(300), ear.next()).await;
        assert!(!matches!(nothing, Ok(Some(_))), "{nothing:?}");
    }
}
