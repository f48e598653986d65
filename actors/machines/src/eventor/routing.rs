//! Routes events to journals, and reports missing events.

use std::sync::Arc;

use super::behaviour::REWIND_PAUSE;
use super::messages::{EventorNews, Watch};
use super::state::{Dead, Eventor, EventorCall, EventorTimer, Marks, Route, Stranger};
use super::{Journal, JournalId, Taken};
use crate::driver::{EventPosition, GapReason, Recent, TaskEventItem, TaskKey};
use crate::kernel::{CallKey, StepContext};
use crate::vocabulary::Moment;

/// The timeout of calls that only pass something on.
const HAND_DEADLINE: std::time::Duration = std::time::Duration::from_secs(10);

impl Eventor {
    // === Tasks ===

    /// Adds a watched task. Its waiting events go to its journal; missed events are read again if the plugin can repeat
    /// them, and reported as a gap if it cannot (EVT-02).
    pub(super) fn watch(&mut self, watch: &Watch, cx: &mut StepContext<Self>) {
        let Watch { task, sink, after, is_renewal } = watch;
        let recent = match self.routes.remove(task) {
            Some(former) => {
                if former.sink != *sink {
                    self.end(vec![former.sink], cx);
                }
                former.recent
            }
            None => Recent::new(self.options.recent_entries),
        };
        let mut back = self.missed_before(after.as_ref());
        if *is_renewal && after.is_none() {
            self.gap(*sink, None, GapReason::Interrupted);
        }
        if let (Some(after), Marks::Of(stream)) = (after, &self.marks)
            && after.stream != *stream
        {
            self.gap(*sink, None, GapReason::NewStream);
        }
        match self.dead.remove(task) {
            Some(Dead { first: Some(first), .. }) if self.marks == Marks::Of(Arc::clone(&first.stream)) => {
                back = Some(back.map_or_else(|| before(&first), |to| earlier(to, before(&first))));
            }
            Some(Dead { count, .. }) => self.gap(*sink, Some(count), GapReason::NotAnnounced),
            None => {}
        }
        let is_behind = back.is_some();
        let mut route = Route { sink: *sink, after: after.clone(), is_behind, recent };
        if let Some(mut stranger) = self.strangers.remove(task) {
            cx.cancel_timer(EventorTimer::HandlerDeadline(task.clone()));
            while let Some(item) = stranger.waiting.take() {
                note(&mut route.recent, cx.moment(), &item);
                self.handed.push((*sink, item));
            }
        }
        self.routes.insert(task.clone(), route);
        if let Some(back) = back {
            self.go_back(back, cx);
        }
    }

    pub(super) fn forget(&mut self, task: &TaskKey, cx: &mut StepContext<Self>) {
        self.dead.remove(task);
        if self.strangers.remove(task).is_some() {
            cx.cancel_timer(EventorTimer::HandlerDeadline(task.clone()));
        }
        if let Some(route) = self.routes.remove(task) {
            self.end(vec![route.sink], cx);
        }
    }

    fn end(&self, sinks: Vec<JournalId>, cx: &mut StepContext<Self>) {
        cx.call(CallKey::default(), HAND_DEADLINE, EventorCall::End(sinks));
    }

    /// The position to open a stream at, so that every handler gets its missing events: the earliest position of all, if all are of
    /// one stream, and else the beginning.
    pub(super) fn earliest(&self) -> Option<EventPosition> {
        let mut earliest: Option<&EventPosition> = None;
        for route in self.routes.values() {
            let after = route.after.as_ref()?;
            match earliest {
                Some(known) if known.stream != after.stream => return None,
                Some(known) if known.sequence <= after.sequence => {}
                Some(_) | None => earliest = Some(after),
            }
        }
        earliest.cloned()
    }

    /// Records before a stream is opened that all present handlers have received the events that were read.
    pub(super) fn note_progress(&mut self) {
        for route in self.routes.values_mut() {
            if !std::mem::take(&mut route.is_behind) && self.cursor.is_some() {
                route.after.clone_from(&self.cursor);
            }
        }
    }

    /// How far back the stream has to be opened for a handler that has received everything up to `after`. `None` if
    /// the present position suffices. Without a position a handler has received nothing, and wants the next events.
    fn missed_before(&self, after: Option<&EventPosition>) -> Option<Option<EventPosition>> {
        let (after, resume) = (after?, self.resume.as_ref()?);
        let has_missed = self.was_open && after.stream == resume.stream && after.sequence < resume.sequence;
        has_missed.then(|| Some(after.clone()))
    }

    /// Schedules that the stream is opened again further back, after a moment in which other late tasks may arrive.
    fn go_back(&mut self, to: Option<EventPosition>, cx: &mut StepContext<Self>) {
        if let Some(resume) = self.resume.take() {
            self.resume = earlier(Some(resume), to);
        }
        if !self.is_rewinding {
            self.is_rewinding = true;
            cx.start_timer(EventorTimer::Rewind, cx.now() + REWIND_PAUSE);
        }
    }

    // === Events ===

    pub(super) fn take(&mut self, item: &Result<TaskEventItem, String>, cx: &mut StepContext<Self>) {
        let (event, position) = match item {
            Ok(TaskEventItem::Event { event, position }) => (event, position),
            // A stream has no gaps of its own.
            Ok(TaskEventItem::Gap { .. }) => return,
            Err(error) => {
                let error = Some(error.clone());
                cx.publish(EventorNews::DeadLetters { task: None, count: 1, error });
                return;
            }
        };
        match position {
            Some(position) => self.moved_to(position),
            None => self.marks = Marks::None,
        }
        let item = TaskEventItem::Event { event: Arc::clone(event), position: position.clone() };
        match self.routes.get_mut(&event.task) {
            Some(route) => {
                note(&mut route.recent, cx.moment(), &item);
                self.handed.push((route.sink, item));
            }
            None => self.strange(&event.task, item, cx),
        }
    }

    /// Records the position of the stream, and reports missing events before it to all handlers.
    fn moved_to(&mut self, position: &EventPosition) {
        self.stream_known(&position.stream);
        match &self.cursor {
            Some(cursor) if cursor.stream == position.stream => {
                if position.sequence > cursor.sequence + 1 {
                    self.gap_for_all(GapReason::Forgotten);
                }
            }
            // It was opened at the beginning, and the plugin no longer has the first events.
            Some(_) | None if self.is_first => self.gap_for_those_before(position),
            Some(_) | None => {}
        }
        self.is_first = false;
        position.mark(&mut self.cursor);
        if !self.is_rewinding {
            position.mark(&mut self.resume);
        }
    }

    /// The name of the stream is known. Unread events of an old stream are lost.
    pub(super) fn stream_known(&mut self, stream: &Arc<str>) {
        match &self.marks {
            Marks::Of(known) if known == stream => return,
            Marks::Of(_) => self.gap_for_all(GapReason::NewStream),
            Marks::Unknown | Marks::None => {
                let elsewhere = |after: &EventPosition| after.stream != *stream;
                let sinks: Vec<_> = self
                    .routes
                    .values()
                    .filter(|route| route.after.as_ref().is_some_and(elsewhere))
                    .map(|route| route.sink)
                    .collect();
                sinks.into_iter().for_each(|sink| self.gap(sink, None, GapReason::NewStream));
            }
        }
        self.marks = Marks::Of(Arc::clone(stream));
    }

    fn gap_for_those_before(&mut self, position: &EventPosition) {
        let is_before =
            |after: &EventPosition| after.stream == position.stream && after.sequence + 1 < position.sequence;
        let sinks: Vec<_> = self
            .routes
            .values()
            .filter(|route| route.after.as_ref().is_some_and(is_before))
            .map(|route| route.sink)
            .collect();
        sinks.into_iter().for_each(|sink| self.gap(sink, None, GapReason::Forgotten));
        for stranger in self.strangers.values_mut() {
            if stranger.waiting.last().is_some_and(is_before) {
                stranger.waiting.put(TaskEventItem::Gap { missed: None, reason: GapReason::Forgotten });
            }
        }
    }

    pub(super) fn gap_for_all(&mut self, reason: GapReason) {
        let sinks: Vec<_> = self.routes.values().map(|route| route.sink).collect();
        sinks.into_iter().for_each(|sink| self.gap(sink, None, reason));
        // A handler that is registered later has to get the gap as well.
        for stranger in self.strangers.values_mut() {
            stranger.waiting.put(TaskEventItem::Gap { missed: None, reason });
        }
    }

    fn gap(&mut self, sink: JournalId, missed: Option<u64>, reason: GapReason) {
        self.handed.push((sink, TaskEventItem::Gap { missed, reason }));
    }

    // === Tasks that were not announced ===

    fn strange(&mut self, task: &TaskKey, item: TaskEventItem, cx: &mut StepContext<Self>) {
        let has_died = |dead: &Dead, position: &EventPosition| {
            dead.last.as_ref().is_some_and(|last| position.is_had_after(last))
        };
        if let (Some(dead), Some(position)) = (self.dead.get(task), position_of(&item))
            && has_died(dead, &position)
        {
            return;
        }
        if !self.strangers.contains_key(task) {
            if self.strangers.len() >= self.options.strangers_max.max(1)
                && let Some(other) = self.strangers.keys().next().cloned()
            {
                cx.cancel_timer(EventorTimer::HandlerDeadline(other.clone()));
                self.handler_deadline_passed(&other, cx);
            }
            let due = cx.now() + self.options.timeout;
            cx.start_timer(EventorTimer::HandlerDeadline(task.clone()), due);
        }
        let limit = self.options.journal_items;
        let stranger = self.strangers.entry(task.clone()).or_insert_with(|| Stranger {
            waiting: Journal::new(limit, None),
            count: 0,
            first: position_of(&item),
        });
        match stranger.waiting.put(item) {
            Taken::Kept => stranger.count += 1,
            Taken::Had => {}
        }
    }

    pub(super) fn handler_deadline_passed(&mut self, task: &TaskKey, cx: &mut StepContext<Self>) {
        let Some(Stranger { count, first, waiting }) = self.strangers.remove(task) else { return };
        if !self.dead.contains_key(task) && self.dead.len() >= self.options.strangers_max.max(1) {
            self.dead.pop_first();
        }
        let dead = self.dead.entry(task.clone()).or_insert(Dead { count: 0, first, last: None });
        dead.count += count;
        dead.last = waiting.last().cloned();
        cx.publish(EventorNews::DeadLetters { task: Some(task.clone()), count, error: None });
    }
}

fn note(recent: &mut Recent, moment: Moment, item: &TaskEventItem) {
    match item {
        TaskEventItem::Event { event, .. } => recent.add(event.at.unwrap_or(moment.now), &event.message),
        TaskEventItem::Gap { .. } => {}
    }
}

fn position_of(item: &TaskEventItem) -> Option<EventPosition> {
    match item {
        TaskEventItem::Event { position, .. } => position.clone(),
        TaskEventItem::Gap { .. } => None,
    }
}

/// The position before an event; `None` is the beginning.
fn before(position: &EventPosition) -> Option<EventPosition> {
    let sequence = position.sequence.checked_sub(1).filter(|sequence| *sequence > 0)?;
    Some(EventPosition { stream: Arc::clone(&position.stream), sequence })
}

/// The earlier of two positions; of two streams, the beginning.
fn earlier(one: Option<EventPosition>, other: Option<EventPosition>) -> Option<EventPosition> {
    let (one, other) = (one?, other?);
    if one.stream != other.stream {
        return None;
    }
    Some(if one.sequence <= other.sequence { one } else { other })
}
