//! Questions of a child that the client has not answered.
//!
//! A child numbers its questions as it likes, and the next one after a crash begins again. So the client sees a number
//! of ours, which is never used twice in a session, and an answer goes to the child that asked or nowhere.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::child::Child;
use ahma_common::envelope::Envelope;

#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<Questions>);

#[derive(Debug, Default)]
struct Questions {
    last_number: u64,
    open: HashMap<u64, Question>,
}

#[derive(Debug)]
struct Question {
    child: Weak<Child>,
    /// The child's id, as it was written.
    id: Box<str>,
}

impl OpenQuestions {
    /// Takes a question in; gives it back as the client is to see it.
    pub(crate) fn ask(&self, child: &Arc<Child>, question: &Envelope<'_>, id: &RawValue) -> Bytes {
        let mut questions = self.0.lock();
        questions
            .open
            .retain(|_, open| open.child.upgrade().is_some_and(|child| child.is_alive()));
        questions.last_number += 1;
        let number = questions.last_number;
        let asked = Question {
            child: Arc::downgrade(child),
            id: id.get().into(),
        };
        questions.open.insert(number, asked);
        drop(questions);
        question.replaced(id, &number.to_string())
    }

    /// The child that a client's answer is for, and the answer as that child is to see it.
    pub(crate) fn answer(&self, answer: &Envelope<'_>, id: &RawValue) -> Option<(Arc<Child>, Bytes)> {
        let number = id.get().parse::<u64>().ok()?;
        let question = self.0.lock().open.remove(&number)?;
        let child = question.child.upgrade()?;
        Some((child, answer.replaced(id, &question.id)))
    }

    /// Takes a question back; gives the child's cancellation as the client is to see it, if it knows the question.
    pub(crate) fn take_back(&self, child: &Arc<Child>, cancellation: &Envelope<'_>) -> Option<Bytes> {
        let id = cancellation.params().ok()?.request_id?;
        let mut questions = self.0.lock();
        let is_it = |question: &Question| {
            *question.id == *id.get() && std::ptr::eq(question.child.as_ptr(), Arc::as_ptr(child))
        };
        let number = questions
            .open
            .iter()
            .find_map(|(number, question)| is_it(question).then_some(*number))?;
        questions.open.remove(&number);
        drop(questions);
        Some(cancellation.replaced(id, &number.to_string()))
    }
}
