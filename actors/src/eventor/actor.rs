//! The effect handler of an eventor: holds the one stream, and fills the journals of the handlers.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use tokio::sync::{Mutex, Notify};

use super::{Eventor, EventorCall, EventorNews, EventorOptions, EventorOutcome, TaskJournals};
use crate::driver::client::{Asked, DriverConnections, DriverError, DriverRpc, EventBatch, EventStream};
use crate::shell::{Address, EffectHandler, NoStore, Running, Settings, Started, start as start_machine};
use crate::vocabulary::DriverName;

/// Starts an eventor of a driver at a vacant address. It opens its streams through `connections`, and puts events into `journals`.
/// `told` is called synchronously for all its news, in order and without loss.
pub fn start(
    address: &Address<Eventor>,
    options: EventorOptions,
    (driver, connections, journals): (DriverName, DriverConnections, TaskJournals),
    told: impl Fn(&EventorNews) + 'static,
    settings: Settings,
) -> Running {
    let handler = Handler { driver, connections, journals, reader: Rc::default(), told: Box::new(told) };
    start_machine(address, options, handler, NoStore, settings)
}

/// The open stream.
struct Reader {
    stream: Mutex<EventStream>,
    closed: Notify,
}

struct Handler {
    driver: DriverName,
    connections: DriverConnections,
    journals: TaskJournals,
    reader: Rc<RefCell<Option<Rc<Reader>>>>,
    told: Box<dyn Fn(&EventorNews)>,
}

impl EffectHandler<Eventor> for Handler {
    fn call(&mut self, call: EventorCall) -> Started<EventorOutcome> {
        match call {
            EventorCall::Open { generation, after } => {
                self.close();
                let stream = self.connections.task_events(&self.driver, generation, after.as_ref());
                let Some(stream) = stream else { return Started::Done(self.gone()) };
                let stream = Mutex::new(stream);
                *self.reader.borrow_mut() = Some(Rc::new(Reader { stream, closed: Notify::new() }));
                return Started::Running(self.read());
            }
            EventorCall::Read => return Started::Running(self.read()),
            EventorCall::Close => self.close(),
            EventorCall::Hand(items) => {
                for (sink, item) in items.iter() {
                    self.journals.put(*sink, item.clone());
                }
            }
            EventorCall::End(sinks) | EventorCall::Finish(sinks) => {
                sinks.iter().for_each(|sink| self.journals.end(*sink));
            }
        }
        Started::Done(EventorOutcome::Done)
    }

    fn published(&mut self, news: &EventorNews) {
        (self.told)(news);
    }
}

impl Handler {
    /// The connection of this generation has ended; the next one is announced when it is open.
    fn gone(&self) -> EventorOutcome {
        let asked = Asked { driver: self.driver.clone(), rpc: DriverRpc::TaskEvents };
        let reason = "its connection has ended".to_owned();
        EventorOutcome::Heard(Err(DriverError::PluginGone { asked, is_worth_retrying: true, reason }))
    }

    /// Closes the open stream. Its reader drops it.
    fn close(&mut self) {
        if let Some(reader) = self.reader.borrow_mut().take() {
            reader.closed.notify_one();
        }
    }

    fn read(&self) -> LocalBoxFuture<'static, EventorOutcome> {
        let reader = self.reader.borrow().clone();
        Box::pin(async move {
            let Some(reader) = reader else { return EventorOutcome::Heard(Ok(EventBatch::Ended)) };
            let mut stream = reader.stream.lock().await;
            tokio::select! {
                biased;
                () = reader.closed.notified() => EventorOutcome::Done,
                heard = stream.next() => EventorOutcome::Heard(heard),
            }
        })
    }
}
