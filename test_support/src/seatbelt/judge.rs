//! The answer of a profile: of the statements that match, the last one decides. Filters of one statement are alternatives.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
};

use regex::Regex;

use super::reader::{Word, statements};

/// Operations that profiles may name. macOS takes no profile with one that it does not know.
const OPERATIONS: &[&str] = &[
    "default",
    "file-clone",
    "file-ioctl",
    "file-link",
    "file-map-executable",
    "file-read*",
    "file-read-data",
    "file-read-metadata",
    "file-read-xattr",
    "file-test-existence",
    "file-write*",
    "file-write-create",
    "file-write-data",
    "file-write-setugid",
    "file-write-unlink",
    "ipc-posix-sem",
    "ipc-posix-shm-read*",
    "ipc-posix-shm-read-data",
    "ipc-posix-shm-write-create",
    "ipc-posix-shm-write-unlink",
    "ipc-sysv-sem",
    "mach-lookup",
    "mach-task-inspect",
    "mach-task-read",
    "network-bind",
    "network-inbound",
    "network-outbound",
    "nvram*",
    "process-exec",
    "process-fork",
    "process-info*",
    "pseudo-tty",
    "signal",
    "sysctl-read",
    "sysctl-write",
    "system-socket",
];

/// Operations that profiles name and of which `default` says nothing: they are open unless another statement closes them.
/// So says a published table of the compiler of macOS 10.15; of the newer `mach-task-…` it is assumed.
const BEYOND_DEFAULT: &[&str] = &[
    "file-clone",
    "file-link",
    "file-map-executable",
    "file-test-existence",
    "mach-task-inspect",
    "mach-task-read",
    "nvram",
    "process-info",
];

fn is_beyond_default(operation: &str) -> bool {
    BEYOND_DEFAULT.iter().any(|open| operation.starts_with(open))
}

/// A profile that was read.
#[derive(Debug)]
pub struct Profile {
    statements: Vec<Statement>,
}

#[derive(Debug)]
struct Statement {
    allows: bool,
    operations: Vec<String>,
    filters: Vec<Filter>,
}

/// Object of an operation.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// Real, as macOS names it: below `/private` where that leads.
    Path(&'a Path),
    /// A Mach service.
    Service(&'a str),
    /// The other end of a connection.
    Remote(IpAddr, u16),
    /// The address to bind to.
    Local(IpAddr, u16),
    Sysctl(&'a str),
    /// Of sockets.
    Domain(&'a str),
    /// The name of a piece of shared memory.
    Memory(&'a str),
}

#[derive(Debug)]
enum Filter {
    Literal(PathBuf),
    Subpath(PathBuf),
    Regex(Regex),
    Service(String),
    Remote(Address),
    Local(Address),
    Sysctl(String),
    SysctlPrefix(String),
    Domain(String),
    Memory(Regex),
    All(Vec<Filter>),
    /// Processes, extensions, kinds of files and other things that no test asks about.
    Other,
}

#[derive(Debug)]
struct Address {
    is_loopback_only: bool,
    port: Option<u16>,
}

impl Profile {
    /// Reads a profile; what `sandbox-exec` would not take, or is not known here, is an error.
    pub fn read(text: &str, parameters: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut lines = statements(text)?.into_iter();
        let version = [Word::Symbol("version".into()), Word::Symbol("1".into())];
        if lines.next().as_deref() != Some(&version) {
            return Err("a profile begins with (version 1)".into());
        }
        let statements = lines
            .map(|words| Statement::read(&words, parameters))
            .collect::<Result<_, _>>()?;
        Ok(Self { statements })
    }

    /// The profile lets a process do this.
    pub fn allows(&self, operation: &str, subject: Subject<'_>) -> bool {
        let decides = |statement: &&Statement| statement.matches(operation, subject);
        let last = self.statements.iter().rev().find(decides);
        last.map_or_else(|| is_beyond_default(operation), |statement| statement.allows)
    }

    /// The same where a statement that names the operation goes before those that name several by `*`, whatever their
    /// order, as some report of macOS.
    pub fn allows_by_name_first(&self, operation: &str, subject: Subject<'_>) -> bool {
        let names = |statement: &&Statement| statement.operations.iter().any(|named| named == operation);
        let decides = |statement: &&Statement| names(statement) && statement.matches(operation, subject);
        let last = self.statements.iter().rev().find(decides);
        last.map_or_else(|| self.allows(operation, subject), |statement| statement.allows)
    }

    /// All paths that are named, at which an answer may change.
    pub fn named_paths(&self) -> impl Iterator<Item = &Path> {
        let filters = self.statements.iter().flat_map(|statement| &statement.filters);
        filters.filter_map(|filter| match filter {
            Filter::Literal(path) | Filter::Subpath(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// The ports to which connections are allowed one by one.
    pub fn named_ports(&self) -> impl Iterator<Item = u16> {
        let filters = self.statements.iter().flat_map(|statement| &statement.filters);
        filters.filter_map(|filter| match filter {
            Filter::Remote(address) => address.port,
            _ => None,
        })
    }
}

impl Statement {
    fn read(words: &[Word], parameters: &BTreeMap<String, String>) -> Result<Self, String> {
        let words = match words {
            [Word::Symbol(word), condition, Word::List(then)] if word == "if" && asks_for_name(condition) => {
                then
            }
            words => words,
        };
        let [Word::Symbol(verdict), rest @ ..] = words else {
            return Err(format!("not a statement: {words:?}"));
        };
        let allows = match verdict.as_str() {
            "allow" => true,
            "deny" => false,
            _ => return Err(format!("neither allow nor deny: {verdict}")),
        };
        let is_name = |word: &&Word| matches!(word, Word::Symbol(_));
        let (names, filters) = rest.split_at(rest.iter().take_while(is_name).count());
        let operations = names
            .iter()
            .map(|word| match word {
                Word::Symbol(name) if OPERATIONS.contains(&name.as_str()) => Ok(name.clone()),
                other => Err(format!("not an operation: {other:?}")),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if operations.is_empty() {
            return Err(format!("no operation in {words:?}"));
        }
        let filters = filters
            .iter()
            .map(|word| Filter::read(word, parameters))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            allows,
            operations,
            filters,
        })
    }

    fn matches(&self, operation: &str, subject: Subject<'_>) -> bool {
        let is_meant = self.operations.iter().any(|named| match named.strip_suffix('*') {
            Some(start) => operation.starts_with(start),
            None => named == operation || (named == "default" && !is_beyond_default(operation)),
        });
        is_meant && (self.filters.is_empty() || self.filters.iter().any(|filter| filter.matches(subject)))
    }
}

/// `(defined? 'NAME)`, for operations that only newer versions know. Here they are all known.
fn asks_for_name(condition: &Word) -> bool {
    let Word::List(words) = condition else {
        return false;
    };
    matches!(words.as_slice(), [Word::Symbol(word), Word::Symbol(name)] if word == "defined?" && name.starts_with('\''))
}

impl Filter {
    fn read(word: &Word, parameters: &BTreeMap<String, String>) -> Result<Self, String> {
        let unknown = || format!("not a filter: {word:?}");
        let Word::List(words) = word else {
            return Err(unknown());
        };
        let [Word::Symbol(name), rest @ ..] = words.as_slice() else {
            return Err(unknown());
        };
        if name == "require-all" {
            let parts = rest.iter().map(|part| Self::read(part, parameters));
            return Ok(Self::All(parts.collect::<Result<_, _>>()?));
        }
        Ok(match (name.as_str(), rest) {
            ("literal", [Word::Text(path)]) => Self::Literal(real(path)?),
            ("subpath", [Word::Text(path)]) => Self::Subpath(real(path)?),
            ("regex", [Word::Text(pattern)]) => Self::Regex(expression(pattern)?),
            ("global-name", [Word::Text(name)]) => Self::Service(name.clone()),
            ("global-name", [Word::List(parameter)]) => match parameter.as_slice() {
                [Word::Symbol(word), Word::Text(key)] if word == "param" => {
                    let value = parameters.get(key);
                    Self::Service(value.cloned().ok_or_else(|| format!("no parameter {key}"))?)
                }
                _ => return Err(unknown()),
            },
            ("remote", [Word::Symbol(kind), Word::Text(address)]) if kind == "ip" || kind == "tcp" => {
                Self::Remote(Address::read(address)?)
            }
            ("local", [Word::Symbol(kind), Word::Text(address)]) if kind == "ip" => {
                Self::Local(Address::read(address)?)
            }
            ("sysctl-name", [Word::Text(name)]) => Self::Sysctl(name.clone()),
            ("sysctl-name-prefix", [Word::Text(name)]) => Self::SysctlPrefix(name.clone()),
            ("socket-domain", [Word::Symbol(domain)]) => Self::Domain(domain.clone()),
            ("ipc-posix-name", [Word::Text(name)]) => {
                Self::Memory(expression(&format!("^{}$", regex::escape(name)))?)
            }
            ("ipc-posix-name-regex", [Word::Text(pattern)]) => Self::Memory(expression(pattern)?),
            ("target" | "socket-protocol" | "vnode-type", [Word::Symbol(_)])
            | ("extension", [Word::Text(_)]) => Self::Other,
            _ => return Err(unknown()),
        })
    }

    fn matches(&self, subject: Subject<'_>) -> bool {
        match (self, subject) {
            (Self::Literal(path), Subject::Path(asked)) => asked == path,
            (Self::Subpath(path), Subject::Path(asked)) => asked.starts_with(path),
            (Self::Regex(regex), Subject::Path(asked)) => regex.is_match(&asked.to_string_lossy()),
            (Self::Service(name), Subject::Service(asked)) => name == asked,
            (Self::Remote(address), Subject::Remote(ip, port))
            | (Self::Local(address), Subject::Local(ip, port)) => address.holds(ip, port),
            // A socket that connects is usually bound to nothing, which every local address matches.
            (Self::Local(_), Subject::Remote(..)) => true,
            (Self::Sysctl(name), Subject::Sysctl(asked)) => name == asked,
            (Self::SysctlPrefix(start), Subject::Sysctl(asked)) => asked.starts_with(start),
            (Self::Domain(domain), Subject::Domain(asked)) => domain == asked,
            (Self::Memory(names), Subject::Memory(asked)) => names.is_match(asked),
            (Self::All(parts), _) => parts.iter().all(|part| part.matches(subject)),
            _ => false,
        }
    }
}

impl Address {
    /// Such as `*:443` or `localhost:*`; the system takes no other hosts.
    fn read(text: &str) -> Result<Self, String> {
        let bad = || format!("not an address: {text}");
        let (host, port) = text.split_once(':').ok_or_else(bad)?;
        Ok(Self {
            is_loopback_only: match host {
                "localhost" => true,
                "*" => false,
                _ => return Err(bad()),
            },
            port: match port {
                "*" => None,
                number => Some(number.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?),
            },
        })
    }

    fn holds(&self, ip: IpAddr, port: u16) -> bool {
        (!self.is_loopback_only || ip.is_loopback()) && self.port.is_none_or(|only| only == port)
    }
}

/// Rust's expressions give a bracket in a class another meaning.
fn expression(pattern: &str) -> Result<Regex, String> {
    Regex::new(&pattern.replace("[[]", "\\[")).map_err(|error| error.to_string())
}

/// A rule on a path with a link on its way, or with a slash at its end, matches nothing.
fn real(path: &str) -> Result<PathBuf, String> {
    let is_linked = ["/etc", "/tmp", "/var"]
        .iter()
        .any(|link| Path::new(path).starts_with(link));
    if is_linked || !path.starts_with('/') || (path.ends_with('/') && path != "/") {
        return Err(format!("not a real path: {path}"));
    }
    Ok(path.into())
}
