//! One attempt to get out, as data.

/// A script, and what makes it special. Most are not: whether a secret came out or anything outside changed is looked at
/// for all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) name: &'static str,
    /// For bash; see `world::prelude` for its variables.
    pub(super) script: &'static str,
    pub(super) needs: Needs,
    pub(super) unconfined: Unconfined,
    pub(super) network: Net,
    /// A path in the scope that must not hold "evil" afterwards, links followed.
    pub(super) plants: Option<&'static str>,
    /// Out, if the answer to the call has this in it.
    pub(super) says: Option<&'static str>,
    /// A file on this machine that must not exist afterwards; `NAME` stands for a name of this run.
    pub(super) makes: Option<&'static str>,
    /// Script of an unsuspecting user, run before and after. Bash, in the scope.
    pub(super) before: &'static str,
    /// The same when the server stands already.
    pub(super) meanwhile: &'static str,
    pub(super) after: &'static str,
    /// Luck decides; then one attempt says little, and it is made as often as `AHMA_TEST_ROUNDS` says.
    pub(super) racy: bool,
    /// Uses what only Linux has; it says nothing about Seatbelt.
    pub(super) only_linux: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Anyone,
    /// Only root could do it, even without a sandbox.
    Root,
    /// Only interesting for those who are not root.
    OrdinaryUser,
}

/// Result without a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unconfined {
    Escapes,
    /// The launcher contains it in every tier.
    Contained,
    /// Depends on the machine or the user.
    Either,
    /// Must not be tried.
    Harmful,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Net {
    Open,
    Off,
    Ports,
    Loopback,
}

pub(super) const fn attempt(name: &'static str, script: &'static str) -> Attempt {
    Attempt {
        name,
        script,
        needs: Needs::Anyone,
        unconfined: Unconfined::Escapes,
        network: Net::Open,
        plants: None,
        says: None,
        makes: None,
        before: "",
        meanwhile: "",
        after: "",
        racy: false,
        only_linux: false,
    }
}

impl Attempt {
    pub(super) const fn needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    pub(super) const fn unconfined(mut self, unconfined: Unconfined) -> Self {
        self.unconfined = unconfined;
        self
    }

    pub(super) const fn network(mut self, network: Net) -> Self {
        self.network = network;
        self
    }

    pub(super) const fn plants(mut self, path: &'static str) -> Self {
        self.plants = Some(path);
        self
    }

    pub(super) const fn says(mut self, text: &'static str) -> Self {
        self.says = Some(text);
        self
    }

    pub(super) const fn makes(mut self, path: &'static str) -> Self {
        self.makes = Some(path);
        self
    }

    pub(super) const fn before(mut self, script: &'static str) -> Self {
        self.before = script;
        self
    }

    pub(super) const fn meanwhile(mut self, script: &'static str) -> Self {
        self.meanwhile = script;
        self
    }

    pub(super) const fn after(mut self, script: &'static str) -> Self {
        self.after = script;
        self
    }

    pub(super) const fn racy(mut self) -> Self {
        self.racy = true;
        self
    }

    pub(super) const fn only_linux(mut self) -> Self {
        self.only_linux = true;
        self
    }

    /// It changes the scope's own protected names, and so wants a scope of its own.
    pub(super) fn wants_own_scope(&self) -> bool {
        self.plants.is_some() || !self.before.is_empty() || !self.after.is_empty()
    }
}
