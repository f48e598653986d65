//! Where everything goes: columns from left to right, one row for each mark. A row belongs to one mark alone, so that no
//! text can stand on another.

use std::collections::BTreeMap;

use super::model::{Mark, Picture};

/// Space around the picture, in pixels as all lengths here.
pub(super) const MARGIN: f64 = 24.0;
/// Where the heads of the columns begin, below the title.
pub(super) const HEAD_TOP: f64 = 52.0;
/// How high the head of a column is.
pub(super) const HEAD_HEIGHT: f64 = 30.0;
/// How much of a line of text fits before it is cut; the whole of it is shown where the mouse rests.
pub(super) const TEXT_LENGTH_MAX: usize = 92;

/// How wide a letter of the usual size is, at most on average.
const LETTER: f64 = 6.7;
/// How wide a letter of the title is.
const TITLE_LETTER: f64 = 9.2;
/// So far down the heads of the columns can be remembered; then they stand again, and at the end of a picture that is higher.
const STRETCH: f64 = 1_200.0;
/// How far the lines of the columns go on below the last row, and the picture below them.
const BELOW: f64 = 14.0;
/// How much room there is between heads and the next row.
const BELOW_HEADS: f64 = 8.0;
/// How wide a letter of a head is.
const HEAD_LETTER: f64 = 7.4;
/// Two columns are at least so far from each other.
const COLUMN_STEP_MIN: f64 = 118.0;
/// How far from its place a text stands.
pub(super) const BESIDE: f64 = 12.0;
/// The picture is at least so wide, so that signs of one column have room.
const WIDTH_MIN: f64 = 640.0;

/// How high the row of a mark is.
const fn height(mark: &Mark) -> f64 {
    match mark {
        Mark::Chapter(_) => 44.0,
        Mark::Pause(_) => 34.0,
        Mark::Message { .. } => 36.0,
        Mark::Sign { .. } => 26.0,
        Mark::GateCloses { .. } | Mark::GateOpens { .. } => 24.0,
        Mark::GatesFall { .. } => 4.0,
    }
}

/// One mark with its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row<'a> {
    pub(super) mark: &'a Mark,
    /// The line on which it stands, near the lower end of its row.
    pub(super) y: f64,
}

/// A picture with places.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout<'a> {
    pub(super) columns: Vec<(&'a str, f64)>,
    pub(super) rows: Vec<Row<'a>>,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Where the heads of the columns begin, from above.
    pub(super) heads: Vec<f64>,
    /// Where the lines of the columns end.
    pub(super) bottom: f64,
    places: BTreeMap<&'a str, f64>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(picture: &'a Picture) -> Self {
        let names = picture.columns();
        let mut columns = Vec::with_capacity(names.len());
        let mut x = MARGIN;
        let mut right = x;
        for name in names {
            let half = head_width(name) / 2.0;
            // Heads keep apart, and so do their lines.
            x = (x + COLUMN_STEP_MIN).max(right + half + 14.0);
            if columns.is_empty() {
                x = MARGIN + half;
            }
            columns.push((name, x));
            right = x + half;
        }
        let (mut heads, mut y) = (vec![HEAD_TOP], HEAD_TOP + HEAD_HEIGHT + BELOW_HEADS);
        let (mut rows, mut since) = (Vec::with_capacity(picture.marks.len()), 0.0);
        for mark in &picture.marks {
            if since > STRETCH {
                heads.push(y + BELOW);
                (y, since) = (y + BELOW + HEAD_HEIGHT + BELOW_HEADS, 0.0);
            }
            y += height(mark);
            since += height(mark);
            rows.push(Row { mark, y });
        }
        let places: BTreeMap<&str, f64> = columns.iter().copied().collect();
        let texts = picture.marks.iter().map(|mark| width_for(mark, &places));
        let title = letters(&picture.title) * TITLE_LETTER + 2.0 * MARGIN;
        let width = texts.fold((right + MARGIN).max(WIDTH_MIN).max(title), f64::max);
        let bottom = y + BELOW;
        let mut height = bottom + BELOW;
        if heads.len() > 1 {
            heads.push(bottom);
            height += HEAD_HEIGHT;
        }
        Self { columns, rows, width, height, heads, bottom, places }
    }

    /// The place of a column.
    pub(super) fn x(&self, name: &str) -> f64 {
        self.places.get(name).copied().unwrap_or(MARGIN)
    }

    /// Where a text begins that is to stand around a place, so that all of it is in the picture.
    pub(super) fn begin_around(&self, center: f64, text: &str) -> f64 {
        let width = text_width(text);
        (center - width / 2.0).min(self.width - MARGIN - width).max(MARGIN)
    }

    /// Whether there is room for a text right of a place.
    pub(super) fn has_room_beside(&self, x: f64, text: &str) -> bool {
        x + BESIDE + text_width(text) <= self.width - MARGIN
    }
}

/// How wide the picture has to be for the text of a mark, which stands at its place: that of a sign right of it, or else left.
fn width_for(mark: &Mark, places: &BTreeMap<&str, f64>) -> f64 {
    let width = text_width(&text_of(mark));
    let place = match mark {
        Mark::Sign { actor, .. } => places.get(actor.as_str()).copied(),
        Mark::Chapter(_)
        | Mark::Pause(_)
        | Mark::Message { .. }
        | Mark::GateCloses { .. }
        | Mark::GateOpens { .. }
        | Mark::GatesFall { .. } => None,
    };
    match place {
        Some(x) if x - BESIDE - width < MARGIN => x + BESIDE + width + MARGIN,
        Some(_) | None => width + 2.0 * MARGIN,
    }
}

/// How wide a text is, at most.
pub(super) fn text_width(text: &str) -> f64 {
    letters(text) * LETTER
}

fn letters(text: &str) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "texts are short")]
    let letters = text.chars().count() as f64;
    letters
}

/// How wide the head of a column is.
pub(super) fn head_width(name: &str) -> f64 {
    (letters(name) * HEAD_LETTER + 22.0).max(64.0)
}

/// The whole text of a mark as it is shown.
pub(super) fn text_of(mark: &Mark) -> String {
    match mark {
        Mark::Chapter(text) | Mark::Pause(text) => cut(text),
        Mark::Message { text, about, .. } | Mark::Sign { text, about, .. } => {
            let space = if about.is_empty() { "" } else { "  " };
            format!("{}{space}{about}", cut(text))
        }
        Mark::GateCloses { write, .. } => format!("write {write}"),
        Mark::GateOpens { .. } => "on disk".to_owned(),
        Mark::GatesFall { .. } => String::new(),
    }
}

/// A text that is not too long.
pub(super) fn cut(text: &str) -> String {
    if text.chars().count() <= TEXT_LENGTH_MAX {
        return text.to_owned();
    }
    text.chars().take(TEXT_LENGTH_MAX - 1).chain(['…']).collect()
}
