//! A host program's own actor on Callboard's shell: it grants a limited number of slots.
//!
//! The machine only decides. The shell adds a bounded mailbox, replies, a feed for subscribers, and a restart after a crash.
//! Run it with `cargo run --example own_actor`.

use std::collections::VecDeque;
use std::fmt;

use callboard::actors::conversation;
use callboard::actors::shell::{
    Address, AskId, Ending, FeedItem, Input, Machine, Never, NoEffectHandler, NoStore, Settings, StepContext,
    StopMode, start,
};
use callboard::actors::vocabulary::Moment;

/// Requests a slot; waits until one is free.
#[derive(Debug)]
struct Take;

/// Too many callers wait for a slot already, so this one is refused.
#[derive(Debug)]
struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WAITING_MAX} callers wait for a slot already; try again later")
    }
}

impl std::error::Error for TooMany {}

/// The limit of waiting callers: the mailbox counts only those that were not received yet.
const WAITING_MAX: usize = 1_000;

/// Returns a slot.
#[derive(Debug)]
struct GiveBack;

conversation! {
    /// The requests to the slots.
    enum SlotsAsk -> SlotsAnswer {
        Take => Result<usize, TooMany>,
        GiveBack => (),
    }
}

#[derive(Debug)]
struct Slots {
    free: usize,
    waiting: VecDeque<AskId>,
}

impl Machine for Slots {
    const KIND: &'static str = "slots";
    type Config = usize;
    type Image = ();
    type Ask = SlotsAsk;
    type Answer = SlotsAnswer;
    type Call = Never;
    type Outcome = Never;
    type Timer = Never;
    type Change = Never;
    type News = usize;
    type View = usize;

    fn restore(slots: &usize, (): (), _moment: Moment) -> Self {
        Self { free: *slots, waiting: VecDeque::new() }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => {}
            Input::Asked { id, ask: SlotsAsk::Take(Take), .. } if self.waiting.len() >= WAITING_MAX => {
                cx.reply(*id, SlotsAnswer::Take(Err(TooMany)));
            }
            Input::Asked { id, ask: SlotsAsk::Take(Take), .. } => {
                self.waiting.push_back(*id);
                self.serve(cx);
            }
            Input::Asked { id, ask: SlotsAsk::GiveBack(GiveBack), .. } => {
                self.free += 1;
                cx.reply(*id, SlotsAnswer::GiveBack(()));
                self.serve(cx);
            }
            Input::StopRequested(StopMode::Stop | StopMode::Detach) => cx.stop(),
            Input::Returned { call, .. } => match *call {},
            Input::Elapsed(timer) => match *timer {},
        }
    }

    fn view(&self) -> usize {
        self.free
    }
}

impl Slots {
    /// Serves the waiting requests, first come, first served, and publishes the number of free slots.
    fn serve(&mut self, cx: &mut StepContext<Self>) {
        while self.free > 0
            && let Some(id) = self.waiting.pop_front()
        {
            self.free -= 1;
            cx.reply(id, SlotsAnswer::Take(Ok(self.free)));
        }
        cx.publish(self.free);
    }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let slots = Address::<Slots>::vacant("slots", 100);
    let running = start(&slots, 2, NoEffectHandler, NoStore, Settings::default());

    let mut feed = slots.subscribe("example", 16)?;
    println!("left: {}, {}", slots.ask(Take).await??, slots.ask(Take).await??);
    let third = slots.ask(Take);
    slots.ask(GiveBack).await?;
    println!("the third one waited, and got its slot: {} left", third.await??);
    while let Some(item) = feed.try_next() {
        match item {
            FeedItem::Snapshot { view, .. } => println!("at first {view} were free"),
            FeedItem::Change { number, news } => println!("change {number}: {news} free"),
            FeedItem::Lagged { missed } => println!("{missed} changes were missed"),
        }
    }

    running.request_stop(StopMode::Stop);
    assert_eq!(running.ended().await, Ending::Normal);
    Ok(())
}
