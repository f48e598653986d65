//! Model checks calls over one connection on several threads, while its instance closes and cuts it.

use std::future::poll_fn;

use shuttle::{future, thread};

use callboard_actors::lease::RetireCause;

use crate::lease::gate::{ConnectionEnd, Gate, NotAdmitted};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::{under_every_schedule, under_many_schedules};

#[test]
fn a_call_that_was_admitted_is_waited_for_and_none_begins_after_that_a4() {
    under_every_schedule(|| {
        let gate = Arc::new(Gate::new(8));
        let (in_flight, is_drained) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let caller = {
            let (gate, in_flight) = (Arc::clone(&gate), Arc::clone(&in_flight));
            let is_drained = Arc::clone(&is_drained);
            thread::spawn(move || match gate.enter() {
                Ok(pass) => {
                    in_flight.fetch_add(1, Ordering::SeqCst);
                    assert!(!is_drained.load(Ordering::SeqCst), "it was not waited for");
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                    drop(pass);
                }
                Err(refused) => {
                    assert_eq!(refused, NotAdmitted::Closed(ConnectionEnd::Retired(RetireCause::Superseded)))
                }
            })
        };
        gate.close(ConnectionEnd::Retired(RetireCause::Superseded));
        // A lost wake-up would be waited for without end, which the model checker reports as a deadlock.
        future::block_on(poll_fn(|context| gate.poll_drained(context)));
        is_drained.store(true, Ordering::SeqCst);
        assert_eq!(in_flight.load(Ordering::SeqCst), 0);
        caller.join().unwrap();
        assert_eq!(gate.calls(), 0);
    });
}

#[test]
fn a_call_in_flight_learns_of_the_cut_whenever_it_comes() {
    under_many_schedules(|| {
        let gate = Arc::new(Gate::new(8));
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let gate = Arc::clone(&gate);
                thread::spawn(move || match gate.enter() {
                    Ok(pass) => {
                        future::block_on(poll_fn(|context| pass.poll_cut(context)));
                        true
                    }
                    Err(refused) => {
                        assert_eq!(refused, NotAdmitted::Closed(ConnectionEnd::Lost));
                        false
                    }
                })
            })
            .collect();
        gate.close(ConnectionEnd::Lost);
        let cut = gate.cut(ConnectionEnd::Retired(RetireCause::Superseded));
        let admitted = callers.into_iter().map(|caller| caller.join().unwrap());
        assert_eq!(admitted.filter(|was_admitted| *was_admitted).count(), cut);
        assert_eq!((gate.calls(), gate.cut(ConnectionEnd::Retired(RetireCause::Superseded))), (0, 0));
    });
}

#[test]
fn no_more_calls_are_admitted_than_may_be_in_flight_f17() {
    under_every_schedule(|| {
        let gate = Arc::new(Gate::<ConnectionEnd>::new(1));
        let other = Arc::clone(&gate);
        let caller = thread::spawn(move || other.enter().map(drop).err());
        let pass = gate.enter();
        assert!(gate.calls() <= 1);
        if let Err(refused) = &pass {
            assert_eq!(*refused, NotAdmitted::Full(1));
        }
        drop(pass);
        if let Some(refused) = caller.join().unwrap() {
            assert_eq!(refused, NotAdmitted::Full(1));
        }
        assert_eq!(gate.calls(), 0);
    });
}

#[test]
fn a_call_that_only_watches_learns_of_the_close_and_delays_no_other_shd_03() {
    under_many_schedules(|| {
        let gate = Arc::new(Gate::new(8));
        let watcher = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                if let Ok(pass) = gate.enter_watching() {
                    assert_eq!(
                        future::block_on(poll_fn(|context| pass.poll_cut(context))),
                        ConnectionEnd::Retired(RetireCause::Superseded)
                    );
                }
            })
        };
        // The call has failed, and only waits for the reason.
        let failed = gate.enter().map(|pass| thread::spawn(move || pass.watch()));
        gate.close(ConnectionEnd::Retired(RetireCause::Superseded));
        future::block_on(poll_fn(|context| gate.poll_drained(context)));
        assert_eq!(gate.cut(ConnectionEnd::Closed), 0);
        watcher.join().unwrap();
        failed.unwrap().join().unwrap();
        assert_eq!(gate.calls(), 0);
    });
}
