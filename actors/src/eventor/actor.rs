//! What an eventor does: it holds the one stream, and fills the journals of the handlers.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use tokio::sync::{Mutex, Notify};

use super::messages::EventorNews;
use super::state::{Eventor, EventorCall, EventorOptions, EventorOutcome};
use crate::driver::client::{EventBatch, EventStream};
use crate::shell::{Address, EffectHandler, NoStore, Running, Settings, start as start_machine};

/// Starts an eventor and gives it a seat at a vacant address. What it says is handed to `told` in the instant in which it is
/// published, in order and without exception.
pub fn start(
    address: &Address<Eventor>,
    options: EventorOptions,
    told: impl Fn(&EventorNews) + 'static,
    settings: Settings,
) -> Running {
    let handler = Handler { reader: Rc::default(), told: Box::new(told) };
    start_machine(address, options, handler, NoStore, settings)
}

/// The stream that is open.
struct Reader {
    stream: Mutex<EventStream>,
    closed: Notify,
}

struct Handler {
    reader: Rc<RefCell<Option<Rc<Reader>>>>,
    told: Box<dyn Fn(&EventorNews)>,
}

impl EffectHandler<Eventor> for Handler {
    fn call(&mut self, call: EventorCall) -> LocalBoxFuture<'static, EventorOutcome> {
        match call {
            EventorCall::Open { client, after } => {
                self.close();
                let stream = Mutex::new(client.task_events(after.as_ref()));
                *self.reader.borrow_mut() = Some(Rc::new(Reader { stream, closed: Notify::new() }));
                return self.read();
            }
            EventorCall::Read => return self.read(),
            EventorCall::Close => self.close(),
            EventorCall::Hand(items) => {
                for (sink, item) in items.iter() {
                    sink.put(item.clone());
                }
            }
            EventorCall::End(sinks) | EventorCall::Finish(sinks) => {
                sinks.iter().for_each(super::TaskEventSink::end)
            }
        }
        Box::pin(std::future::ready(EventorOutcome::Done))
    }

    fn published(&mut self, news: &EventorNews) {
        (self.told)(news);
    }
}

impl Handler {
    /// Closes the stream that is open. Whoever reads from it lets it go.
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
