//! Rectangles drawn with characters.

use spar_python::Random;
use spar_python::text::strip;

use crate::dataset::Generator;
use crate::options::options;
use crate::scoring::small_int;
use crate::{Item, ItemError};

options! {
    /// Options of `rectangle_count`.
    RectangleCountOptions {
        /// Most rectangles, 1 to 1000. Default 10.
        max_rectangles: i64 = 10,
        /// Characters of a line, 10 to 1000. Default 80.
        width: i64 = 80,
        /// Lines, 10 to 1000. Default 80.
        height: i64 = 80,
    }
    |given, problems| {
        problems.between("max_rectangles", given.max_rectangles, 1, 1_000);
        problems.between("width", given.width, 10, 1_000);
        problems.between("height", given.height, 10, 1_000);
    }
}

/// Rectangles that overlap at most in pairs, to be counted.
pub(crate) struct RectangleCount;

impl Generator for RectangleCount {
    type Options = RectangleCountOptions;

    fn item(options: &RectangleCountOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let wanted = rng.int(1, options.max_rectangles)?;
        let (width, height) = (options.width as usize, options.height as usize);
        let mut grid = vec![0_u8; width * height];
        let mut drawn = 0;
        for _ in 0..100_000 {
            if drawn == wanted {
                break;
            }
            let left = rng.int(0, options.width - 3)?;
            let right = rng.int(left + 2, options.width - 1)? as usize;
            let top = rng.int(0, options.height - 3)?;
            let bottom = rng.int(top + 2, options.height - 1)? as usize;
            let (left, top) = (left as usize, top as usize);
            let cells = || {
                let rows = [top, bottom].into_iter();
                let lines =
                    rows.flat_map(move |row| (left..=right).map(move |column| (row, column)));
                let sides = (top + 1..bottom).flat_map(move |row| [(row, left), (row, right)]);
                lines.chain(sides).map(move |(row, column)| row * width + column)
            };
            if cells().all(|cell| grid[cell] < 2) {
                cells().for_each(|cell| grid[cell] += 1);
                drawn += 1;
            }
        }
        let mut picture = String::with_capacity(grid.len() + height);
        for row in grid.chunks(width) {
            picture.extend(row.iter().map(|count| [' ', '#', '█'][usize::from(*count)]));
            picture.push('\n');
        }
        let question = format!(
            "Your task is to count how many rectangles are present in an ASCII grid.\n\nSingle rectangles are outlined with a '#', overlapping rectangles (max 2) are shown with '█'.\n\nYour output should be a single number, representing the total count of rectangles.\n\nNow, it's your turn. How many rectangles do you see in the grid below?\n{picture}\n"
        );
        Ok(Item::new(question, drawn).with("solution", drawn))
    }

    fn score(_: &RectangleCountOptions, answer: Option<&str>, item: &Item) -> f64 {
        let read = || Some((small_int(strip(answer?))?, small_int(item.gold())?));
        let Some((given, gold)) = read() else { return 0.0 };
        match given.abs_diff(gold) {
            0 => 1.0,
            distance if distance < 5 => 0.8 * (1.0 - distance as f64 / 5.0),
            _ => 0.0,
        }
    }
}
