//! Logins of people to the console: a one-time code or a token becomes a cookie, and every change carries a token that no
//! other page can know.
//!
//! Only hashes are kept of what is compared, so that neither timing nor a look into memory gives a login away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ahma_common::secret::Secret;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::digest::{Hash, random_secret, sha256};

/// A working day; the operator's token is checked at every request all the same.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

/// Logins at once. The oldest goes first, so that nothing grows without bound.
const MAX_LOGINS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Logins {
    code: Mutex<Option<Hash>>,
    /// The oldest first.
    open: Mutex<Vec<OpenLogin>>,
}

#[derive(Debug)]
struct OpenLogin {
    cookie: Hash,
    until: Instant,
    login: Login,
}

/// One person in one browser.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) name: Arc<str>,
    /// Goes with every form of a page, and is asked for with every change.
    pub(crate) form_token: Arc<str>,
    /// The token it was made with, which may be revoked meanwhile.
    pub(crate) credential: Option<Secret>,
}

impl Login {
    pub(crate) fn has_form_token(&self, presented: &str) -> bool {
        self.form_token.as_bytes().ct_eq(presented.as_bytes()).into()
    }
}

impl Logins {
    /// A code with which one browser can log in, once. The one before is void.
    pub(crate) fn new_code(&self) -> Secret {
        let code = random_secret();
        *self.code.lock() = Some(sha256(code.as_bytes()));
        Secret::new(code)
    }

    /// True for the code that was given out last, unless it was used.
    pub(crate) fn use_code(&self, presented: &str) -> bool {
        let presented = sha256(presented.as_bytes());
        let mut code = self.code.lock();
        let is_it = code.is_some_and(|code| code.ct_eq(&presented).into());
        if is_it {
            *code = None;
        }
        is_it
    }

    /// The value of a new cookie.
    pub(crate) fn open(&self, name: Arc<str>, credential: Option<Secret>) -> Secret {
        let cookie = random_secret();
        let mut open = self.open.lock();
        let now = Instant::now();
        open.retain(|login| login.until > now);
        if open.len() >= MAX_LOGINS {
            open.remove(0);
        }
        open.push(OpenLogin {
            cookie: sha256(cookie.as_bytes()),
            until: now + LIFETIME,
            login: Login {
                name,
                form_token: random_secret().into(),
                credential,
            },
        });
        Secret::new(cookie)
    }

    pub(crate) fn find(&self, cookie: &str) -> Option<Login> {
        let cookie = sha256(cookie.as_bytes());
        let open = self.open.lock();
        let found = open.iter().find(|login| login.cookie.ct_eq(&cookie).into())?;
        (found.until > Instant::now()).then(|| found.login.clone())
    }

    pub(crate) fn close(&self, cookie: &str) {
        let cookie = sha256(cookie.as_bytes());
        self.open.lock().retain(|login| login.cookie != cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_and_only_the_newest() {
        let logins = Logins::default();
        assert!(!logins.use_code(""));
        let (old, new) = (logins.new_code(), logins.new_code());
        assert!(!logins.use_code(old.expose()));
        assert!(logins.use_code(new.expose()));
        assert!(!logins.use_code(new.expose()));
    }

    #[test]
    fn a_login_lasts_until_it_is_closed_and_has_its_own_form_token() {
        let logins = Logins::default();
        let mine = logins.open("me".into(), None);
        let other = logins.open("you".into(), None);
        let login = logins.find(mine.expose()).unwrap();
        assert_eq!(&*login.name, "me");
        assert!(login.has_form_token(&login.form_token));
        let foreign = logins.find(other.expose()).unwrap().form_token;
        assert!(!login.has_form_token(&foreign));
        assert!(!login.has_form_token(""));
        logins.close(mine.expose());
        assert!(logins.find(mine.expose()).is_none());
        assert!(logins.find(other.expose()).is_some());
    }

    #[test]
    fn logins_do_not_grow_without_bound() {
        let logins = Logins::default();
        let first = logins.open("me".into(), None);
        for _ in 0..MAX_LOGINS {
            logins.open("me".into(), None);
        }
        assert!(logins.find(first.expose()).is_none());
        assert_eq!(logins.open.lock().len(), MAX_LOGINS);
    }
}
