//! Reservations of addresses: the parts of two hosts never share one.
//!
//! A reservation names the owner of an address; it does not say whether an actor runs there. It is held from before the first life of
//! an actor until its host has ended. So a new life may start at the address whatever the state of the former one, also when that was
//! killed and is not dropped yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flag of an address: whether it is reserved.
#[derive(Debug, Default)]
pub(super) struct Reservable(Arc<AtomicBool>);

impl Reservable {
    pub(super) fn reserve(&self) -> Option<Reservation> {
        let was_reserved = self.0.swap(true, Ordering::AcqRel);
        (!was_reserved).then(|| Reservation(Arc::clone(&self.0)))
    }
}

/// The reservation of an [`Address`](super::Address). It ends when it is dropped.
#[derive(Debug)]
#[must_use = "the address is not reserved any more when this is dropped"]
pub struct Reservation(Arc<AtomicBool>);

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_reserved_once_at_a_time() {
        let address = Reservable::default();
        let first = address.reserve().expect("it is free");
        assert!(address.reserve().is_none());
        assert!(address.reserve().is_none(), "a refusal frees nothing");
        drop(first);
        assert!(address.reserve().is_some());
    }
}
