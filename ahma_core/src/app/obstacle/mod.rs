//! Finds the obstacle that keeps the sandbox, or its full tier, from working on this machine, and the narrowest way to remove it.
//!
//! [`MachineFacts`] are read once; [`Obstacle::of`] judges them and looks at nothing else. The remedy opens no more than
//! this program needs: a setting for the whole machine is named only where nothing narrower exists.

mod apparmor;
mod facts;
mod judgement;
mod seatbelt;

pub(super) use apparmor::profile_for_this_program;
pub(super) use facts::MachineFacts;
pub(super) use judgement::Obstacle;
pub(super) use seatbelt::seatbelt_remedy;
