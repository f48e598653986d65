//! Computes the position of everything: columns from left to right, one row for each mark. A row belongs to exactly one mark, and a text
//! stands between two columns that are far enough apart. So no text overlaps another text or a line.

use std::collections::BTreeMap;
use std::time::Duration;

use super::label::{Label, cut, heads, letters, text_width, width_of};
use super::model::{Mark, Picture};

/// Space around the picture, in pixels like all lengths here.
pub(super) const MARGIN: f64 = 24.0;
/// The top of the heads of the columns, below the title and the legend.
pub(super) const HEAD_TOP: f64 = 72.0;
/// The height of the head of a column.
pub(super) const HEAD_HEIGHT: f64 = 30.0;
/// The distance of a text from its position.
pub(super) const BESIDE: f64 = 12.0;
/// The distance between the lines of a text.
pub(super) const LINE_HEIGHT: f64 = 14.0;

/// The width of a letter of the title.
const TITLE_LETTER: f64 = 9.2;
/// The distance after which the heads of the columns are repeated, and repeated at the end of a higher picture.
const STRETCH: f64 = 1_200.0;
/// How far the lines of the columns extend below the last row, and the picture below them.
const BELOW: f64 = 14.0;
/// The space between heads and the next row.
const BELOW_HEADS: f64 = 8.0;
/// The width of a letter of a head.
const HEAD_LETTER: f64 = 7.4;
/// The minimum distance of two columns.
const COLUMN_STEP_MIN: f64 = 118.0;
/// The minimum width of the picture.
const WIDTH_MIN: f64 = 640.0;
/// The width of the time axis, left of all columns.
const AXIS_WIDTH: f64 = 72.0;

/// The height of the row of a mark.
fn height(mark: &Mark, label: &Label) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a text has few lines")]
    let text = label.lines.len() as f64 * LINE_HEIGHT;
    match mark {
        Mark::Chapter(_) => 44.0,
        Mark::Pause(_) => 34.0,
        Mark::Message { .. } => 22.0 + text,
        Mark::Sign { .. } => 12.0 + text.max(LINE_HEIGHT),
        Mark::GateCloses { .. } | Mark::GateOpens { .. } => 10.0 + text,
        Mark::GatesFall { .. } => 4.0,
        Mark::Time(_) | Mark::Active { .. } => 0.0,
    }
}

/// How a text is anchored at a position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    /// It begins there.
    Begin(f64),
    /// It is centred there.
    Middle(f64),
    /// It ends there.
    End(f64),
}

impl Anchor {
    /// The left edge of a text of this width.
    #[cfg(test)]
    fn left(self, width: f64) -> f64 {
        match self {
            Self::Begin(x) => x,
            Self::Middle(x) => x - width / 2.0,
            Self::End(x) => x - width,
        }
    }
}

/// One mark with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row<'a> {
    pub(super) mark: &'a Mark,
    /// The baseline of the mark, near the lower end of its row.
    pub(super) y: f64,
    /// Its time, if the time is shown here.
    pub(super) at: Option<Duration>,
    pub(super) label: Label,
    pub(super) anchor: Option<Anchor>,
}

impl Row<'_> {
    /// The baseline of the last line of its text.
    pub(super) fn text_bottom(&self) -> f64 {
        match self.mark {
            Mark::Message { .. } => self.y - 9.0,
            Mark::Sign { .. } => self.y - 4.0,
            Mark::Chapter(_)
            | Mark::Pause(_)
            | Mark::Time(_)
            | Mark::Active { .. }
            | Mark::GateCloses { .. }
            | Mark::GateOpens { .. }
            | Mark::GatesFall { .. } => self.y - 5.0,
        }
    }

    /// The baseline of the first line of its text.
    pub(super) fn text_top(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a text has few lines")]
        let above = self.label.lines.len().saturating_sub(1) as f64;
        self.text_bottom() - above * LINE_HEIGHT
    }

    /// The vertical range in which the row covers the whole width, without lines of columns.
    pub(super) fn gap(&self) -> Option<(f64, f64)> {
        match self.mark {
            Mark::Chapter(_) => Some((self.y - 32.0, self.y - 2.0)),
            Mark::Pause(_) => Some((self.y - 22.0, self.y - 3.0)),
            Mark::Time(_)
            | Mark::Active { .. }
            | Mark::Message { .. }
            | Mark::Sign { .. }
            | Mark::GateCloses { .. }
            | Mark::GateOpens { .. }
            | Mark::GatesFall { .. } => None,
        }
    }
}

/// A column with its position and its head.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    pub(super) head: String,
    pub(super) x: f64,
}

/// A picture with positions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout<'a> {
    pub(super) columns: Vec<Column<'a>>,
    pub(super) rows: Vec<Row<'a>>,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The tops of the heads of the columns, from top to bottom.
    pub(super) heads: Vec<f64>,
    /// The lower end of the lines of the columns.
    pub(super) bottom: f64,
    /// The position of the time axis, if there is one.
    pub(super) axis: Option<f64>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(picture: &'a Picture) -> Self {
        let names = picture.columns();
        let numbers: BTreeMap<&str, usize> =
            names.iter().enumerate().map(|(number, name)| (*name, number)).collect();
        let labels: Vec<Label> = picture.marks.iter().map(Label::of).collect();
        let has_axis = picture.marks.iter().any(|mark| matches!(mark, Mark::Time(_)));
        let axis = has_axis.then_some(MARGIN + AXIS_WIDTH - 10.0);
        let left = MARGIN + if has_axis { AXIS_WIDTH } else { 0.0 };
        let (columns, right) = columns(&names, &gaps(picture, &labels, &numbers), left);
        let (rows, heads, bottom) = rows(picture, labels, &columns, &numbers);
        let wide = |text: &str| left + text_width(text) + MARGIN;
        let texts = picture.marks.iter().map(|mark| match mark {
            Mark::Chapter(text) | Mark::Pause(text) => wide(&cut(text)),
            _ => 0.0,
        });
        let title = width_of(letters(&picture.title), TITLE_LETTER) + 2.0 * MARGIN;
        let width = texts.fold(right.max(WIDTH_MIN).max(title), f64::max);
        let below = if heads.len() > 1 { HEAD_HEIGHT } else { 0.0 };
        Self { columns, rows, width, height: bottom + BELOW + below, heads, bottom, axis }
    }

    /// The position of a column.
    pub(super) fn x(&self, name: &str) -> f64 {
        self.columns.iter().find(|column| column.name == name).map_or(MARGIN, |column| column.x)
    }
}

/// Between which columns the text of a mark stands, by the index of the left column, and how it is anchored there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    RightOf(usize),
    Between(usize),
    LeftOf(usize),
}

impl Side {
    fn of(mark: &Mark, numbers: &BTreeMap<&str, usize>) -> Option<Self> {
        let number = |name: &str| numbers.get(name).copied();
        let (from, to) = match mark {
            Mark::Message { from, to, .. } => (number(from)?, number(to)?),
            Mark::Sign { actor, .. } => return Some(Self::RightOf(number(actor)?)),
            Mark::GateCloses { actor, .. } => (number(actor)?, number("disk")?),
            Mark::GateOpens { actor, .. } => (number("disk")?, number(actor)?),
            Mark::Chapter(_)
            | Mark::Pause(_)
            | Mark::Time(_)
            | Mark::Active { .. }
            | Mark::GatesFall { .. } => return None,
        };
        Some(match (from, to) {
            _ if to == from + 1 => Self::Between(from),
            _ if from == to + 1 => Self::Between(to),
            _ if to < from => Self::LeftOf(from),
            _ => Self::RightOf(from),
        })
    }

    /// The index of the column left of the text.
    const fn left(self) -> usize {
        match self {
            Self::RightOf(number) | Self::Between(number) => number,
            Self::LeftOf(number) => number - 1,
        }
    }
}

/// The space that the texts need right of each column.
fn gaps(picture: &Picture, labels: &[Label], numbers: &BTreeMap<&str, usize>) -> Vec<f64> {
    let mut gaps = vec![0.0; numbers.len()];
    for (mark, label) in picture.marks.iter().zip(labels) {
        if let Some(side) = Side::of(mark, numbers) {
            let gap: &mut f64 = &mut gaps[side.left()];
            *gap = gap.max(label.width() + 2.0 * BESIDE);
        }
    }
    gaps
}

/// The columns, and their right edge with their texts and the margin.
fn columns<'a>(names: &[&'a str], gaps: &[f64], left: f64) -> (Vec<Column<'a>>, f64) {
    let mut columns: Vec<Column<'a>> = Vec::with_capacity(names.len());
    let (mut edge, mut right) = (left, left);
    for ((name, head), gap) in names.iter().zip(heads(names)).zip(gaps) {
        let half = head_width(&head) / 2.0;
        // Heads keep a distance, and so do their lines.
        let x = right.max(edge + half);
        columns.push(Column { name, head, x });
        (edge, right) = (x + half + 14.0, x + gap.max(COLUMN_STEP_MIN));
    }
    let last = columns.last().zip(gaps.last()).map_or(left, |(column, gap)| column.x + gap);
    (columns, last.max(edge - 14.0) + MARGIN)
}

/// The rows, the positions of the heads, and the end of the lines.
fn rows<'a>(
    picture: &'a Picture,
    labels: Vec<Label>,
    columns: &[Column<'_>],
    numbers: &BTreeMap<&str, usize>,
) -> (Vec<Row<'a>>, Vec<f64>, f64) {
    let (mut heads, mut y) = (vec![HEAD_TOP], HEAD_TOP + HEAD_HEIGHT + BELOW_HEADS);
    let (mut rows, mut since, mut time) = (Vec::with_capacity(labels.len()), 0.0, None);
    for (mark, label) in picture.marks.iter().zip(labels) {
        if since > STRETCH {
            heads.push(y + BELOW);
            (y, since) = (y + BELOW + HEAD_HEIGHT + BELOW_HEADS, 0.0);
        }
        let height = height(mark, &label);
        y += height;
        since += height;
        if let Mark::Time(at) = mark {
            time = Some(*at);
        }
        // A row that is too low for its time leaves the time to the next row.
        let at = if height >= LINE_HEIGHT { time.take() } else { None };
        let anchor = Side::of(mark, numbers).map(|side| anchor(side, columns));
        rows.push(Row { mark, y, at, label, anchor });
    }
    let bottom = y + BELOW;
    if heads.len() > 1 {
        heads.push(bottom);
    }
    (rows, heads, bottom)
}

fn anchor(side: Side, columns: &[Column<'_>]) -> Anchor {
    let x = |number: usize| columns.get(number).map_or(MARGIN, |column| column.x);
    match side {
        Side::RightOf(number) => Anchor::Begin(x(number) + BESIDE),
        Side::Between(number) => Anchor::Middle(f64::midpoint(x(number), x(number + 1))),
        Side::LeftOf(number) => Anchor::End(x(number) - BESIDE),
    }
}

/// The width of the head of a column.
pub(super) fn head_width(head: &str) -> f64 {
    (width_of(letters(head), HEAD_LETTER) + 22.0).max(64.0)
}

/// A time on the axis.
pub(super) fn time(at: Duration) -> String {
    let (seconds, millis) = (at.as_secs(), at.subsec_millis());
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}.{millis:03} s"),
        (0, _) => format!("{minutes}:{:02}.{millis:03}", seconds % 60),
        _ => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Arrow, Sign};
    use super::*;

    fn sign(actor: &str, text: &str) -> Mark {
        let about = String::new();
        Mark::Sign { actor: actor.to_owned(), text: text.to_owned(), about, sign: Sign::News }
    }

    fn message(from: &str, to: &str, text: &str) -> Mark {
        let (from, to, text) = (from.to_owned(), to.to_owned(), text.to_owned());
        Mark::Message { from, to, text, about: "csi-node/zfs @2".to_owned(), arrow: Arrow::Said }
    }

    fn picture(title: &str, marks: Vec<Mark>) -> Picture {
        Picture { title: title.to_owned(), marks }
    }

    fn gate(write: u64) -> Mark {
        Mark::GateCloses { actor: "registry".to_owned(), write }
    }

    /// Every actor sends messages of every length to every other, and each has signs of every length.
    fn crowd() -> Picture {
        let long = "process of-a-plugin-whose-name-goes-on-and-on";
        let names = ["host", "agent", "allocation a", "registry", "disk", "instances", long];
        let texts = [4, 30, 34, 60, 92, 300].map(|letters| "word ".repeat(letters / 5));
        let mut marks = vec![Mark::Chapter("begins".to_owned()), gate(1)];
        for from in names {
            for text in &texts {
                marks.push(Mark::Time(Duration::from_millis(marks.len() as u64)));
                marks.push(sign(from, text));
                marks.extend(names.iter().map(|to| message(from, to, text)));
            }
            marks.push(sign(from, &"x".repeat(200)));
            marks.push(Mark::GateOpens { actor: from.to_owned(), through: 1 });
            marks.push(Mark::Pause("1 s later".to_owned()));
        }
        picture("a crowd", marks)
    }

    #[test]
    fn no_text_stands_on_a_line_on_another_text_or_outside() {
        let picture = crowd();
        let layout = Layout::of(&picture);
        let mut above = HEAD_TOP + HEAD_HEIGHT;
        for row in &layout.rows {
            if let Some(anchor) = row.anchor {
                let width = row.label.width();
                let left = anchor.left(width);
                let right = left + width;
                assert!(left >= MARGIN + AXIS_WIDTH && right <= layout.width - MARGIN, "{row:?}");
                let is_beside = |column: &Column<'_>| column.x + 10.0 < left || right < column.x - 10.0;
                assert!(layout.columns.iter().all(is_beside), "{row:?} in {:?}", layout.columns);
                assert!(row.text_top() - 10.0 > above, "{row:?} below {above}");
                assert!(row.text_bottom() + 3.0 < row.y + 1.0, "{row:?}");
            }
            let is_head_above = |top: &&f64| **top < row.y;
            let head = layout.heads.iter().rfind(is_head_above).map_or(0.0, |top| top + HEAD_HEIGHT);
            above = row.y.max(head);
        }
        let heads: Vec<_> =
            layout.columns.iter().map(|column| (column.x, head_width(&column.head))).collect();
        assert!(heads.windows(2).all(|two| two[1].0 - two[1].1 / 2.0 - two[0].0 - two[0].1 / 2.0 > 13.0));
    }

    #[test]
    fn columns_are_as_far_from_each_other_as_the_texts_between_them_need() {
        let columns = |marks: Vec<Mark>| {
            let picture = picture("", marks);
            let layout = Layout::of(&picture);
            layout
                .columns
                .iter()
                .map(|column| format!("{} at {:.1}", column.name, column.x))
                .collect::<Vec<_>>()
        };
        let names = ["host", "agent", "process of-a-long-name-for-a-plugin"];
        let signs = |text: &str| names.iter().map(|name| sign(name, text)).collect();
        // Half a head is 32 wide, and half of the long name's head 92.4; lines are 118 apart, and heads 14.
        let expected = ["host at 56.0", "agent at 174.0", "process of-a-long-name-for-a-plugin at 312.4"];
        assert_eq!(columns(signs("")), expected);
        // Twenty letters of 6.7, and 12 on each side.
        let expected = ["host at 56.0", "agent at 214.0", "process of-a-long-name-for-a-plugin at 372.0"];
        assert_eq!(columns(signs(&"x".repeat(20))), expected);
    }

    #[test]
    fn each_mark_has_a_row_of_its_own_below_the_heads() {
        let actor = || "registry".to_owned();
        let marks = vec![
            Mark::Chapter(String::new()),
            Mark::Pause(String::new()),
            message("registry", "registry", ""),
            Mark::Time(Duration::from_millis(7)),
            Mark::GatesFall { actor: actor() },
            sign("registry", &"two lines ".repeat(4)),
            gate(1),
            Mark::Active { plugin: String::new(), before: None, now: None },
            Mark::GateOpens { actor: actor(), through: 1 },
        ];
        let picture = picture("", marks);
        let layout = Layout::of(&picture);
        let places: Vec<_> = layout.rows.iter().map(|row| row.y).collect();
        assert_eq!(places, [154.0, 188.0, 224.0, 224.0, 228.0, 268.0, 292.0, 292.0, 316.0]);
        assert_eq!((layout.bottom, layout.height, &*layout.heads), (330.0, 344.0, &[HEAD_TOP][..]));
        let times: Vec<_> = layout.rows.iter().map(|row| row.at.is_some()).collect();
        assert_eq!(times.iter().position(|is_there| *is_there), Some(5), "a row that is high enough for it");
        assert_eq!(times.iter().filter(|is_there| **is_there).count(), 1);
    }

    #[test]
    fn heads_stand_again_behind_a_stretch_and_at_the_end() {
        // The rows of fifty gates are as high as a stretch; one more exceeds it.
        let whole = picture("", (0..51).map(gate).collect());
        assert_eq!(Layout::of(&whole).heads, [HEAD_TOP]);
        let higher = picture("", (0..53).map(gate).collect());
        let layout = Layout::of(&higher);
        let places: Vec<_> = layout.rows[50..].iter().map(|row| row.y).collect();
        assert_eq!(places, [1_334.0, 1_410.0, 1_434.0]);
        assert_eq!(layout.heads, [HEAD_TOP, 1_348.0, 1_448.0]);
        assert_eq!((layout.bottom, layout.height), (1_448.0, 1_492.0));
        let twice = picture("", (0..103).map(gate).collect());
        assert_eq!(Layout::of(&twice).heads.len(), 4);
    }

    #[test]
    fn a_picture_is_as_wide_as_its_title_and_its_texts_need() {
        let wide = |title: usize, text: usize| {
            let chapter = Mark::Chapter("-".repeat(text));
            format!("{:.1}", Layout::of(&picture(&"-".repeat(title), vec![chapter])).width)
        };
        assert_eq!(wide(10, 10), "640.0");
        assert_eq!(wide(80, 10), "784.0", "80 letters of 9.2, and both margins");
        assert_eq!(wide(10, 92), "664.4", "92 letters of 6.7, and both margins");
        assert_eq!(wide(10, 500), "664.4", "no text is longer");
    }

    #[test]
    fn a_time_on_the_axis_is_as_short_as_it_can_be() {
        let times = [0, 42, 59_999, 60_000, 3_599_001, 3_600_000, 90_061_500];
        let told = times.map(|millis| time(Duration::from_millis(millis)));
        let expected = ["0.000 s", "0.042 s", "59.999 s", "1:00.000", "59:59.001", "1:00:00", "25:01:01"];
        assert_eq!(told, expected);
    }
}
