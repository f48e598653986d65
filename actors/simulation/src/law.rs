//! The laws by their ids. Each is a sentence of `docs/guarantees.md`, and each is checked after every step.

macro_rules! laws {
    ($($(#[$doc:meta])* $law:ident = $id:literal: $sentence:literal,)*) => {
        /// A law that the simulator and the search check at every step.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Law {
            $(#[doc = $sentence] $law,)*
        }

        impl Law {
            /// All laws.
            pub const ALL: &'static [Self] = &[$(Self::$law,)*];

            /// Its id, as `docs/guarantees.md` names it.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$law => $id,)*
                }
            }

            /// The invariant in one sentence.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$law => $sentence,)*
                }
            }
        }
    };
}

laws! {
    Shell1 = "SHELL-1": "effects leave in order, and no promise leaves before the writes in front of it are on disk",
    Shell1a = "SHELL-1A": "only promises wait for the disk, and a sick disk refuses them at once",
    Shell2 = "SHELL-2": "after a failed write everything behind it is refused, and memory is what the disk holds",
    Shell3 = "SHELL-3": "a call has its key and its deadline, and what comes back to a later life changes nothing",
    Shell4 = "SHELL-4": "no step panics of itself, and a crash costs one message and nothing else",
    Shell7 = "SHELL-7": "whatever was taken is answered once",
    R1 = "R1": "the active registration is the best confirmed one, the newest of equals; it changes in the step that changes it; a generation is given once, and one that was fit while it was active is not active again; why one is active or not is said as it is at present",
    R1a = "R1a": "a registration becomes active only after it has proven itself, unless none that is fit serves",
    R1b = "R1b": "when the active one is reported unfit, the newest fit one takes over in that step; what the registry is told of it is what its instance found",
    R1c = "R1c": "one that lost its place by failing regains it only after a calm time that doubles and is longer than it was fit before, or when no other is fit",
    R1d = "R1d": "a standby keeps its connection and what was read of it when another becomes active, in both directions: a takeover by one that is fit needs no look, and nothing of one that goes on is gone",
    F16 = "F16": "the gate of a replacement opens only for an allocation that has been healthy for the whole time, without a break, no allocation is stopped for a replacement without an answer about health that permits it, and no caller is told an error of one that completes",
    R2 = "R2": "numbers of registrations only grow and stay with their owner, across restarts",
    R3 = "R3": "new contents are an update that is told, equal ones are nothing",
    R4 = "R4": "a deregistration of what is not there is harmless and publishes nothing",
    R5 = "R5": "a message with several roles changes all or none",
    R6 = "R6": "subscribers get a snapshot and then every change once, in order, numbered",
    R7 = "R7": "who waits is answered by the step that brings the plugin, or by the deadline",
    R8 = "R8": "what is restored is not routed to before it is confirmed, and leaves after its grace",
    A1 = "A1": "who prepares a task is told what it needs once it is made, and the same every time",
    A2 = "A2": "a task that runs is waited for, and when its time is up the true cause is told and one restart is asked for; of one that was ready a restart is asked for when it has been unhealthy for as long as it may",
    A3 = "A3": "what is registered answered ready since its present start, one thing is under way at a time, and a change of health is told once",
    A4 = "A4": "what leaves is deregistered once, then calls end, then its files go, and nothing is asked or registered any more",
    A5 = "A5": "each allocation has one supervisor, one life after the other, which is told all that was said of it in its order, and what one waits for holds up no other",
    I1 = "I1": "there is one instance for each active plugin, the old one retires first and in bounded time, and nothing of a former one counts",
    I2 = "I2": "healthy is said only after everything was read over the connection there is, and what is shown is what is handed out",
    I3 = "I3": "identity and capabilities are read once for each connection, one call at a time, and a round is one probe",
    I4 = "I4": "the first failure takes the same path as any later one, and a look always follows",
    I5 = "I5": "every change of health carries a reason",
    I6 = "I6": "once stopping nothing new starts",
    I7 = "I7": "a node plugin that need not know its node is usable without",
    I8 = "I8": "an instance that retires is told who serves its plugin next: another one, none yet, or none since all stop",
    N1 = "N1": "the first fingerprints are told once and in time, later changes one by one, and what is shown is what was told",
    N2 = "N2": "the end of the first wait names every plugin with its state",
    Hlt8 = "HLT-08": "a restart within the grace is no news, and beyond it there is one removal",
    Scl5 = "SCL-05": "equal reports are told once",
    Reg8 = "REG-08": "what a former life says late changes nothing",
    Hlt3 = "HLT-03": "a driver that is watched is pinged; while it leaves a ping unanswered it is told to be unhealthy, and keeps its connection and its process; with an answer the health counts again that it told last",
    Hlt4 = "HLT-04": "a driver's readiness is told as soon as it is known, and so is everything else about it",
    Hlt5 = "HLT-05": "every end of a driver's stream or process leads to another try, after a pause that grows",
    Shd3 = "SHD-03": "callers of a driver that is told to stop are cut off in that step",
    Shd4 = "SHD-04": "a driver is asked to end only when the calls to it have ended, or their time is over",
    Shd6 = "SHD-06": "stopping wins over everything else in every step of a driver's life, and ends what runs",
    Prc3 = "PRC-03": "what is left of a process has ended before its successor starts",
    Sec7 = "SEC-07": "a driver whose program is refused is not launched again before that has changed, or a restart is requested",
    Prc4 = "PRC-04": "of each driver there is one process and one actor, and never a second",
    Prc5 = "PRC-05": "the end of a driver's process is published at once, and cuts off its callers",
    Prc9 = "PRC-09": "the intent is on disk before the process is, and whatever runs is owned, by a record that stays as long",
    Res1 = "RES-01": "a driver is given out while it is shown as what was wanted, over its present generation, and an acknowledged restart is asked of each of its actors until it is done",
    P1 = "P1": "what waits when a commit starts shares it in its order, and who is told yes is on disk",
    P2 = "P2": "what is loaded is what was written, and what is damaged is told and takes nothing else along",
    P3 = "P3": "who is told no is told once, with everything behind it, and on a mended disk the next write works",
    P4 = "P4": "whenever the power goes, the file opens again and holds what was told, and of each commit all or nothing",
    Evt1 = "EVT-01": "a slow handler is told exactly how many events it missed",
    Evt2 = "EVT-02": "each event of a task comes once and in order, or a gap is told in its place",
    Evt3 = "EVT-03": "what is subscribed to is subscribed to again after every end",
    S1 = "S1": "a permanent child is started again whenever it ends, a transient one unless it ended normally, a temporary one never, with those who share its fate, after its pause, until the budget is spent",
    S2 = "S2": "children start in order and stop in reverse, never two lives of one at once, and a half-done start is undone",
    S3 = "S3": "once it stops it starts nothing, each stop has its deadline and is told of, and detaching leaves what outlives its host",
    S4 = "S4": "after the end nothing is left",
    T1 = "T1": "of each task at most one copy lives at any time, across all its runs",
    T2 = "T2": "once nothing goes wrong any more, a task that is wanted runs, or is told to have ended or to have failed, and that is so, and none is out of reach; no restart is charged to it that was never tried",
    T3 = "T3": "of a task that is told to have stopped, ended or failed nothing lives, and nothing begins any more, and none that is to stop is told to run",
    T4 = "T4": "a run that its driver says is running, whose handle is on disk and that was not asked to stop is not ended by its host",
    T5 = "T5": "a driver is told to start a run only when the run's id is on disk",
    V1 = "V1": "a claim is on disk before any call is made for it",
    V2 = "V2": "one call is in flight for each volume, across takeovers, retries and force",
    V3 = "V3": "a volume is attached, staged and published in this order, and undone in reverse, each step only after the one before is confirmed",
    V4 = "V4": "what is unclear is taken neither as done nor as not done",
    V5 = "V5": "whatever may be set up has its intent with its exact arguments on disk, and gets its undo",
    V6 = "V6": "no directory is made, mounted or removed but those of the volume",
    V7 = "V7": "what is handed out was seen in the kernel, and is what is recorded",
    V8 = "V8": "nothing is unpublished under a process, unless nothing of it is left",
    V9 = "V9": "undoing goes on until it is confirmed, or forced with an audit",
    V10 = "V10": "what a plugin answers of a volume is passed on unchanged in every call that takes it",
    V12 = "V12": "no two allocations hold a volume in ways that exclude each other, and no volume is claimed that is unknown, out of reach or beyond the limit of its plugin",
    V13 = "V13": "a plugin is reported as unused only when no volume of it is claimed or set up, and counts as used no longer; what may be needed is not stopped before",
    V14 = "V14": "claims of an earlier run are neither set up nor undone before they are confirmed",
    V15 = "V15": "a caller that gives up waiting gets an error, and what it asked for goes on",
    V16 = "V16": "each step goes to the present generation, and by what that can do",
    Res5 = "RES-05": "the route of a plugin is that of the last news of its instances",
    C59 = "C059": "a volume that was created is known by the answer of its plugin until it is deleted, and nothing else is known of one in use",
    C2 = "C002": "a group of snapshots has one order, however often and in whatever order its volumes are named",
    R9 = "R9": "what is refused changes nothing",
}
