//! Temporary instances: each is launched, queried and ended; no orphan process is ever left (PRC-02).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture, select};
use tokio::sync::{oneshot, watch};

use super::launcher::Launcher;
use super::{ProbeOrder, Refusal, Told};

pub(super) type Probed = Result<Box<Told>, Refusal>;

/// The cancellation handles of all running probes.
type Running = Rc<RefCell<BTreeMap<u64, Rc<Cancel>>>>;

pub(super) struct Probes {
    launcher: Rc<dyn Launcher>,
    running: Running,
    count: watch::Sender<usize>,
    numbers: Cell<u64>,
}

/// Cancels a probe, once: it ends its process, and has no result.
struct Cancel(Cell<Option<oneshot::Sender<()>>>);

impl Cancel {
    fn fire(&self) {
        drop(self.0.take());
    }
}

struct CancelOnDrop(Rc<Cancel>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.fire();
    }
}

/// Counts a running probe, also if it panics.
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

    /// Spawns a probe as a separate task, which outlives its caller until its process has ended.
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
            // The caller may be gone.
            let _ = tell.send(probed);
        });
        let guard = CancelOnDrop(cancel);
        async move {
            let probed = told.await;
            drop(guard);
            probed.unwrap_or_else(|_| Err(Refusal::Lost("its task crashed".to_owned())))
        }
    }

    /// Cancels every probe, and waits until the last process has ended.
    pub(super) fn sweep(&self) -> impl Future<Output = ()> + 'static {
        self.running.borrow().values().for_each(|cancel| cancel.fire());
        let mut count = self.count.subscribe();
        async move {
            // It fails only without a sender, and then no probe runs.
            let _ = count.wait_for(|count| *count == 0).await;
        }
    }
}

/// One probe. On every way out, its process has ended.
async fn probe(launcher: &dyn Launcher, order: ProbeOrder, mut cancelled: oneshot::Receiver<()>) -> Probed {
    let called_off = || Refusal::Lost("it was cancelled".to_owned());
    let launching = caught(launcher.launch(order.name.clone(), order.spec.clone()));
    let launched = match select(launching, &mut cancelled).await {
        Either::Left((launched, _)) => launched,
        Either::Right((_, launching)) => {
            // The launch may be in progress: ending the process lets it return.
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
        // It is unknown whether a process runs.
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

/// Converts a panic to an error: the launched process must still be ended.
fn caught<T: 'static>(
    attempt: LocalBoxFuture<'static, Result<T, Refusal>>,
) -> LocalBoxFuture<'static, Result<T, Refusal>> {
    let attempt = AssertUnwindSafe(attempt).catch_unwind();
    let crashed = |_| Err(Refusal::Lost("its examination crashed".to_owned()));
    attempt.map(move |done| done.unwrap_or_else(crashed)).boxed_local()
}
