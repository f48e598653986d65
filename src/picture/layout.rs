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

#[cfg(test)]
mod tests {
    use super::super::model::Sign;
    use super::*;

    /// Ten letters, which are 67 wide.
    const TEN: &str = "0123456789";

    fn sign(actor: &str, text: &str) -> Mark {
        let about = String::new();
        Mark::Sign { actor: actor.to_owned(), text: text.to_owned(), about, sign: Sign::News }
    }

    fn picture(title: &str, marks: Vec<Mark>) -> Picture {
        Picture { title: title.to_owned(), marks }
    }

    fn gate(write: u64) -> Mark {
        Mark::GateCloses { actor: "registry".to_owned(), write }
    }

    fn columns(layout: &Layout<'_>) -> Vec<String> {
        layout.columns.iter().map(|(name, x)| format!("{name} at {x:.1}")).collect()
    }

    #[test]
    fn columns_keep_apart_by_their_heads_and_their_lines() {
        let names =
            ["host", "agent", "process of-a-long-name-for-a-plugin", "process of-another-long-name-for-one"];
        let picture = picture("", names.iter().map(|name| sign(name, "")).collect());
        let layout = Layout::of(&picture);
        // Half a head is 32 wide, and those of long names 140.5 and 144.2; lines are 118 apart, and heads 14.
        let expected = [
            "host at 56.0",
            "agent at 174.0",
            "process of-a-long-name-for-a-plugin at 360.5",
            "process of-another-long-name-for-one at 659.2",
        ];
        assert_eq!(columns(&layout), expected);
        assert_eq!(format!("{:.1}", layout.width), "827.4", "the last head and the margin");
        assert_eq!((layout.x("agent"), layout.x("nobody")), (174.0, MARGIN));
    }

    #[test]
    fn each_mark_has_a_row_of_its_own_below_the_heads() {
        let actor = || "registry".to_owned();
        let said = Mark::Message {
            from: actor(),
            to: actor(),
            text: String::new(),
            about: String::new(),
            arrow: super::super::model::Arrow::Said,
        };
        let marks = vec![
            Mark::Chapter(String::new()),
            Mark::Pause(String::new()),
            said,
            sign("registry", ""),
            gate(1),
            Mark::GateOpens { actor: actor(), through: 1 },
            Mark::GatesFall { actor: actor() },
        ];
        let picture = picture("", marks);
        let layout = Layout::of(&picture);
        let places: Vec<_> = layout.rows.iter().map(|row| row.y).collect();
        assert_eq!(places, [134.0, 168.0, 204.0, 230.0, 254.0, 278.0, 282.0]);
        assert_eq!((layout.bottom, layout.height, &*layout.heads), (296.0, 310.0, &[HEAD_TOP][..]));
    }

    #[test]
    fn heads_stand_again_behind_a_stretch_and_at_the_end() {
        // The rows of fifty gates are as high as a stretch, and one more is over it.
        let whole = picture("", (0..51).map(gate).collect());
        assert_eq!(Layout::of(&whole).heads, [HEAD_TOP]);
        let higher = picture("", (0..53).map(gate).collect());
        let layout = Layout::of(&higher);
        let places: Vec<_> = layout.rows[50..].iter().map(|row| row.y).collect();
        assert_eq!(places, [1_314.0, 1_390.0, 1_414.0]);
        assert_eq!(layout.heads, [HEAD_TOP, 1_328.0, 1_428.0]);
        assert_eq!((layout.bottom, layout.height), (1_428.0, 1_472.0));
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
    fn a_sign_whose_text_has_no_room_left_of_it_makes_room_right_of_it() {
        let places = BTreeMap::from([("left", 60.0), ("nearly", 90.0), ("just", 103.0), ("right", 300.0)]);
        let width = |actor: &str| width_for(&sign(actor, TEN), &places);
        assert_eq!(
            [width("left"), width("nearly"), width("just"), width("right")],
            [163.0, 193.0, 115.0, 115.0]
        );
        assert_eq!(width_for(&Mark::Chapter(TEN.to_owned()), &places), 115.0);
    }

    #[test]
    fn a_text_stands_around_its_place_but_never_outside() {
        let picture = picture("", vec![]);
        let layout = Layout::of(&picture);
        let begins = [0.0, 300.0, 630.0].map(|center| layout.begin_around(center, TEN));
        assert_eq!(begins, [MARGIN, 266.5, 549.0]);
        let has_room = [300.0, 537.0, 538.0].map(|x| layout.has_room_beside(x, TEN));
        assert_eq!(has_room, [true, true, false]);
    }

    #[test]
    fn a_text_is_cut_where_it_is_too_long_and_says_so() {
        let text = |letters| "ü".repeat(letters);
        assert_eq!(cut(&text(92)), text(92));
        assert_eq!(cut(&text(93)), text(91) + "…");
        let long =
            Mark::Sign { actor: String::new(), text: text(93), about: "zfs".to_owned(), sign: Sign::News };
        assert_eq!(text_of(&long), text(91) + "…  zfs");
    }
}
