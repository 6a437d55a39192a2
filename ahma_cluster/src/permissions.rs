//! The permissions of each role of a pool, as NATS enforces them.
//!
//! A pool is a NATS account of its own: accounts have separate subjects and streams, so that a credential of one pool sees
//! nothing of another. Within the account, users can publish and subscribe to what their role needs and no more.

use nkeys::KeyPair;

use crate::names::{Pool, QUEUE_CONSUMER, inbox_of};

/// A part in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    FrontEnd,
    Worker,
    /// Makes the streams, and looks at them.
    Operator,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::FrontEnd, Self::Worker, Self::Operator];

    /// The role in names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::FrontEnd => "front-end",
            Self::Worker => "worker",
            Self::Operator => "operator",
        }
    }
}

/// A user of NATS with its secret.
pub struct RoleKey {
    pub role: Role,
    /// The seed, which is the secret.
    pub seed: String,
    pub public_key: String,
}

impl std::fmt::Debug for RoleKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoleKey")
            .field("role", &self.role)
            .field("public_key", &self.public_key)
            .finish_non_exhaustive()
    }
}

impl RoleKey {
    /// A new key.
    pub fn new(role: Role) -> Result<Self, nkeys::error::Error> {
        let pair = KeyPair::new_user();
        Ok(Self {
            role,
            seed: pair.seed()?,
            public_key: pair.public_key(),
        })
    }
}

/// The account of a pool, for the block `accounts` of the server's configuration.
pub fn account(pool: &Pool, keys: &[RoleKey]) -> String {
    let users: String = keys.iter().map(|key| user(pool, key)).collect();
    let name = pool.as_str().to_ascii_uppercase();
    format!("AHMA_{name}: {{\n  jetstream: enabled\n  users: [\n{users}  ]\n}}\n")
}

fn user(pool: &Pool, key: &RoleKey) -> String {
    let Permissions {
        publish,
        mut subscribe,
        answers,
    } = permissions(pool, key.role);
    subscribe.push(format!("{}.>", inbox_of(&key.public_key)));
    let list = |subjects: &[String]| {
        let quoted: Vec<String> = subjects.iter().map(|subject| format!("\"{subject}\"")).collect();
        quoted.join(", ")
    };
    let answers = if answers {
        "\n      allow_responses: true"
    } else {
        ""
    };
    format!(
        "    # {}\n    {{ nkey: {}, permissions: {{\n      publish: {{ allow: [{}] }}\n      subscribe: {{ allow: [{}] }}{answers}\n    }} }}\n",
        key.role.name(),
        key.public_key,
        list(&publish),
        list(&subscribe),
    )
}

struct Permissions {
    publish: Vec<String>,
    subscribe: Vec<String>,
    /// It may answer requests that reach it.
    answers: bool,
}

fn permissions(pool: &Pool, role: Role) -> Permissions {
    let (log, jobs, output) = (pool.operations_stream(), pool.jobs_stream(), pool.output_stream());
    let sessions = pool.sessions_stream();
    let api = |method: &str| format!("$JS.API.{method}");
    let reads_log = || {
        vec![
            api(&format!("STREAM.INFO.{log}")),
            api(&format!("STREAM.INFO.{jobs}")),
            api(&format!("STREAM.INFO.{output}")),
            api(&format!("STREAM.INFO.{sessions}")),
            api(&format!("CONSUMER.CREATE.{log}")),
            api(&format!("STREAM.MSG.GET.{log}")),
            api(&format!("STREAM.MSG.GET.{jobs}")),
            // Flow control of the consumer.
            "$JS.FC.>".to_owned(),
            pool.roll_call_subject(),
        ]
    };
    match role {
        Role::FrontEnd => Permissions {
            publish: [
                format!("ahma.op.{pool}.>"),
                format!("ahma.job.{pool}.>"),
                format!("ahma.ctl.{pool}.*"),
                api(&format!("DIRECT.GET.{output}")),
                api(&format!("STREAM.PURGE.{output}")),
                pool.session_subject("*"),
                api(&format!("STREAM.MSG.GET.{sessions}")),
            ]
            .into_iter()
            .chain(reads_log())
            .collect(),
            subscribe: vec![format!("ahma.out.{pool}.>"), pool.beat_subject("*")],
            answers: false,
        },
        Role::Worker => Permissions {
            publish: vec![
                format!("ahma.op.{pool}.>"),
                format!("ahma.out.{pool}.>"),
                pool.beat_subject("*"),
                api(&format!("STREAM.INFO.{log}")),
                api(&format!("STREAM.MSG.GET.{log}")),
                api(&format!("CONSUMER.MSG.NEXT.{jobs}.{QUEUE_CONSUMER}")),
                format!("$JS.ACK.{jobs}.{QUEUE_CONSUMER}.>"),
            ],
            subscribe: vec![pool.control_subject("*"), pool.roll_call_subject()],
            answers: true,
        },
        Role::Operator => Permissions {
            publish: [&log, &jobs, &output, &sessions]
                .into_iter()
                .flat_map(|stream| {
                    [
                        api(&format!("STREAM.CREATE.{stream}")),
                        api(&format!("STREAM.UPDATE.{stream}")),
                    ]
                })
                .chain([api(&format!("CONSUMER.DURABLE.CREATE.{jobs}.{QUEUE_CONSUMER}"))])
                .chain(reads_log())
                .collect(),
            subscribe: vec![pool.beat_subject("*")],
            answers: false,
        },
    }
}
