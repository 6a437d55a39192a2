//! System calls and tests of their arguments, as data, and their compilation by seccompiler.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// A test of one argument. Every argument tested here is 32 bits wide in the kernel, which ignores the upper half, as
/// does the test.
#[derive(Debug, Clone)]
pub(super) struct ArgTest {
    index: u8,
    op: Op,
    value: u64,
}

pub(super) const fn equals(index: u8, value: u64) -> ArgTest {
    let op = Op::Eq;
    ArgTest { index, op, value }
}

pub(super) const fn differs(index: u8, value: u64) -> ArgTest {
    let op = Op::Ne;
    ArgTest { index, op, value }
}

/// The bits of `mask` are those of `value`.
pub(super) const fn masked(index: u8, mask: u64, value: u64) -> ArgTest {
    let op = Op::MaskedEq(mask);
    ArgTest { index, op, value }
}

/// Calls that a filter acts on: always, or if every test of one rule holds.
#[derive(Debug, Default)]
pub(super) struct CallRules {
    always: BTreeSet<i64>,
    on_match: BTreeMap<i64, Vec<Vec<ArgTest>>>,
}

impl CallRules {
    pub(super) fn always(calls: &[i64]) -> Self {
        let mut rules = Self::default();
        rules.add_all(calls);
        rules
    }

    pub(super) fn add_all(&mut self, calls: &[i64]) {
        self.always.extend(calls);
    }

    /// Adds a rule; rules of the same call are alternatives.
    pub(super) fn add(&mut self, call: i64, tests: &[ArgTest]) {
        self.on_match.entry(call).or_default().push(tests.to_vec());
    }

    pub(super) fn compile(self, arch: TargetArch, action: SeccompAction) -> io::Result<BpfProgram> {
        let mut rules = BTreeMap::new();
        for (call, alternatives) in &self.on_match {
            let compiled = alternatives.iter().map(|tests| seccomp_rule(tests));
            rules.insert(*call, compiled.collect::<io::Result<Vec<_>>>()?);
        }
        // To seccompiler a call without a rule matches always.
        rules.extend(self.always.iter().map(|call| (*call, Vec::new())));
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, action, arch).map_err(io::Error::other)?;
        BpfProgram::try_from(filter).map_err(io::Error::other)
    }
}

fn seccomp_rule(tests: &[ArgTest]) -> io::Result<SeccompRule> {
    let conditions = tests
        .iter()
        .map(|test| SeccompCondition::new(test.index, SeccompCmpArgLen::Dword, test.op.clone(), test.value));
    let conditions = conditions.collect::<Result<_, _>>().map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}
