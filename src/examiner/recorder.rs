//! The judge of a running exam, and its journal.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_actors::csi::Call;
use callboard_actors::examiner::{Event, Judge, Outcome, Report, Request, Rule, Surface};
use tokio::time::Instant;

use super::error::ExaminerError;

/// The most bytes of a journal. Later observations are judged, but not stored.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;

/// Passes each observation to the judge, and writes it to the journal before the call continues.
#[derive(Debug)]
pub(super) struct Recorder(Mutex<Exam>);

#[derive(Debug)]
struct Exam {
    judge: Judge,
    /// The time of the exam at the start of this process, in milliseconds.
    started_at: u64,
    started: Instant,
    /// The number of the last call.
    last: u64,
    journal: Option<Journal>,
}

#[derive(Debug)]
struct Journal {
    file: File,
    room: u64,
}

/// A call in flight. If it is dropped before it has ended, its caller has disconnected.
#[derive(Debug)]
pub(super) struct InFlight {
    recorder: Arc<Recorder>,
    number: u64,
    has_ended: bool,
}

impl Recorder {
    /// Begins an exam, or continues the exam in the journal.
    pub(super) fn begin(surface: Surface, journal: Option<&Path>) -> Result<Arc<Self>, ExaminerError> {
        let mut judge = Judge::new(surface);
        let (mut at, mut last) = (0, 0);
        let journal = journal.map(|path| open(path, &mut judge, &mut at, &mut last)).transpose()?;
        let mut exam = Exam { judge, started_at: at, started: Instant::now(), last, journal };
        exam.observe(&Event::Starts { at });
        Ok(Arc::new(Self(Mutex::new(exam))))
    }

    /// Records the start of a call. Also returns the rules that it breaks, each with the reason.
    pub(super) fn call(self: &Arc<Self>, call: Call, request: Request) -> (InFlight, Vec<(Rule, String)>) {
        let mut exam = self.locked();
        exam.last += 1;
        let (at, number) = (exam.now(), exam.last);
        let broken = exam.observe(&Event::Begins { at, number, call, request: Box::new(request) });
        for (rule, problem) in &broken {
            tracing::warn!(rule = %rule, rpc = %call, number, problem, "rule broken");
        }
        (InFlight { recorder: Arc::clone(self), number, has_ended: false }, broken)
    }

    /// The report so far.
    pub(super) fn report(&self, is_over: bool) -> Report {
        self.locked().judge.report(is_over)
    }

    fn locked(&self) -> MutexGuard<'_, Exam> {
        // A panic in it would have ended the exam with an error of the call that panicked; the observations stay true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exam {
    fn now(&self) -> u64 {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.started_at.saturating_add(elapsed)
    }

    fn observe(&mut self, event: &Event) -> Vec<(Rule, String)> {
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.write(event)
        {
            tracing::warn!(error = %error, "cannot write the journal of the exam any more");
            self.journal = None;
        }
        self.judge.observe(event)
    }
}

impl Journal {
    fn write(&mut self, event: &Event) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.room = self
            .room
            .checked_sub(line.len() as u64)
            .ok_or_else(|| std::io::Error::other(format!("it has reached {JOURNAL_BYTES_MAX} bytes")))?;
        // Data in the kernel survives the process; an exam does not outlive the machine.
        self.file.write_all(&line)
    }
}

/// Opens a journal, and passes its observations to the judge. An incomplete line of the last process is left out.
fn open(path: &Path, judge: &mut Judge, at: &mut u64, last: &mut u64) -> Result<Journal, ExaminerError> {
    let failed = |source| ExaminerError::Journal { file: path.to_owned(), source };
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create(true).mode(0o600).open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::new(&file);
    let (mut text, mut line, mut whole) = (Vec::new(), 0, 0);
    while reader.read_until(b'\n', &mut text).map_err(failed)? > 0 {
        line += 1;
        if text.last() != Some(&b'\n') {
            break;
        }
        whole += text.len() as u64;
        let event: Event = serde_json::from_slice(&text).map_err(|source| ExaminerError::JournalContent {
            file: path.to_owned(),
            line,
            source,
        })?;
        let (Event::Starts { at: now }
        | Event::Begins { at: now, .. }
        | Event::Ends { at: now, .. }
        | Event::Leaves { at: now, .. }) = &event;
        *at = *now;
        if let Event::Begins { number, .. } = &event {
            *last = *number;
        }
        judge.observe(&event);
        text.clear();
    }
    file.set_len(whole).map_err(failed)?;
    Ok(Journal { file, room: JOURNAL_BYTES_MAX.saturating_sub(size) })
}

impl InFlight {
    /// Records the answer of the call.
    pub(super) fn end(mut self, outcome: Outcome) {
        self.has_ended = true;
        let mut exam = self.recorder.locked();
        let (at, number) = (exam.now(), self.number);
        exam.observe(&Event::Ends { at, number, outcome });
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut exam = self.recorder.locked();
            let (at, number) = (exam.now(), self.number);
            exam.observe(&Event::Leaves { at, number });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request { volume_id: "v".to_owned(), ..Request::default() }
    }

    #[test]
    fn an_exam_goes_on_after_the_death_of_the_plugin_and_the_calls_in_flight_are_lost() {
        let directory = tempfile::tempdir().expect("a directory");
        let journal = directory.path().join("journal");
        let begin = || Recorder::begin(Surface::default(), Some(&journal)).expect("it can be written");
        let first = begin();
        let (call, _) = first.call(Call::NodeStageVolume, request());
        // As in a process that is killed.
        std::mem::forget(call);
        let half = "{\"Begins\":{\"at\":";
        File::options()
            .append(true)
            .open(&journal)
            .expect("it is there")
            .write_all(half.as_bytes())
            .expect("room");
        let second = begin();
        let (call, broken) = second.call(Call::NodeStageVolume, request());
        assert!(!broken.iter().any(|(rule, _)| *rule == Rule::C001), "the first one is lost");
        assert_eq!(call.number, 2);
        call.end(Outcome::Failed(13));
        let report = begin().report(false);
        assert_eq!((report.starts, report.calls["NodeStageVolume"]), (3, 2));
        assert_eq!(report.open.len(), 1, "it is unknown whether it is staged");
    }

    #[test]
    fn what_is_no_journal_is_refused_and_left_as_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("notes");
        std::fs::write(&file, "milk\nbread\n").expect("room");
        let error = Recorder::begin(Surface::default(), Some(&file)).expect_err("no journal");
        assert!(error.to_string().starts_with("line 1 of "), "{error}");
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "milk\nbread\n");
    }
}
