//! Temporary instances: each is launched, asked and ended, and none is ever left behind (PRC-02).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture, select};
use tokio::sync::{oneshot, watch};

use super::launcher::Launcher;
use super::refusal::Refusal;
use super::state::{ProbeOrder, Told};

/// What a probe comes to.
pub(super) type Probed = Result<Box<Told>, Refusal>;

/// How each probe that has not ended is called off.
type Running = Rc<RefCell<BTreeMap<u64, Rc<Cancel>>>>;

/// All probes that have not ended.
pub(super) struct Probes {
    launcher: Rc<dyn Launcher>,
    running: Running,
    count: watch::Sender<usize>,
    numbers: Cell<u64>,
}

/// Calls a probe off, once: it ends what it launched, and comes to nothing.
struct Cancel(Cell<Option<oneshot::Sender<()>>>);

impl Cancel {
    fn fire(&self) {
        drop(self.0.take());
    }
}

/// Calls a probe off when nobody waits for it any more.
struct CancelOnDrop(Rc<Cancel>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.fire();
    }
}

/// Counts a probe as running, also if it panics.
struct Counted {
    number: u64,
    running: Running,
    count: watch::Sender<usize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.running.borrow_mut().remove(&self.number);
        self.count.send_modify(|count| *count -= 1);
    }
}

impl Probes {
    pub(super) fn new(launcher: impl Launcher) -> Self {
        Self {
            launcher: Rc::new(launcher),
            running: Rc::default(),
            count: watch::Sender::new(0),
            numbers: Cell::new(0),
        }
    }

    /// Begins a probe in a task of its own, which outlives whoever waits for it until its process has ended.
    pub(super) fn begin(&self, order: ProbeOrder) -> impl Future<Output = Probed> + 'static {
        let (sender, cancelled) = oneshot::channel();
        let cancel = Rc::new(Cancel(Cell::new(Some(sender))));
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        self.running.borrow_mut().insert(number, Rc::clone(&cancel));
        self.count.send_modify(|count| *count += 1);
        let (tell, told) = oneshot::channel();
        let counted = Counted { number, running: Rc::clone(&self.running), count: self.count.clone() };
        let launcher = Rc::clone(&self.launcher);
        actix_rt::spawn(async move {
            let probed = probe(&*launcher, order, cancelled).await;
            drop(counted);
            // Nobody may wait for it any more.
            let _ = tell.send(probed);
        });
        let guard = CancelOnDrop(cancel);
        async move {
            let probed = told.await;
            drop(guard);
            probed.unwrap_or_else(|_| Err(Refusal::Lost("whoever asked it crashed".to_owned())))
        }
    }

    /// Calls every probe off, and waits until the process of the last one has ended.
    pub(super) fn sweep(&self) -> impl Future<Output = ()> + 'static {
        self.running.borrow().values().for_each(|cancel| cancel.fire());
        let mut count = self.count.subscribe();
        async move {
            // It is an error only if nobody can count any more, and then nothing runs.
            let _ = count.wait_for(|count| *count == 0).await;
        }
    }
}

/// One probe. By whichever way it leaves, what it launched has ended.
async fn probe(launcher: &dyn Launcher, order: ProbeOrder, mut cancelled: oneshot::Receiver<()>) -> Probed {
    let called_off = || Refusal::Lost("it was called off".to_owned());
    let launching = caught(launcher.launch(order.name.clone(), order.spec.clone()));
    let launched = match select(launching, &mut cancelled).await {
        Either::Left((launched, _)) => launched,
        Either::Right((_, launching)) => {
            // It may be half-way: being told to end is what lets the launch come back.
            launcher.end(order.name.clone(), order.stop_grace).await;
            if launching.await.is_ok() {
                launcher.end(order.name.clone(), order.stop_grace).await;
            }
            return Err(called_off());
        }
    };
    let asking: LocalBoxFuture<'_, Probed> = match launched {
        Ok(handshake) => caught(launcher.ask(handshake, order.clone())),
        Err(refusal @ Refusal::Launch(_)) => return Err(refusal),
        // Whether something runs is not known.
        Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
    };
    let told = match select(asking, &mut cancelled).await {
        Either::Left((told, _)) => told,
        Either::Right(_) => Err(called_off()),
    };
    let own_end = launcher.end(order.name, order.stop_grace).await;
    told.map_err(|refusal| match refusal {
        Refusal::Silent { message, is_transient, .. } => {
            Refusal::Silent { message, ending: own_end, is_transient }
        }
        refusal => refusal,
    })
}

/// A crash of ours is a failure like any other: what was launched still has to be ended.
fn caught<T: 'static>(
    attempt: LocalBoxFuture<'static, Result<T, Refusal>>,
) -> LocalBoxFuture<'static, Result<T, Refusal>> {
    let attempt = AssertUnwindSafe(attempt).catch_unwind();
    let crashed = |_| Err(Refusal::Lost("looking at it crashed".to_owned()));
    attempt.map(move |done| done.unwrap_or_else(crashed)).boxed_local()
}
