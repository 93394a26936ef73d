//! A coloured cube that is turned.

use spar_python::Random;
use spar_python::text::{lower, strip};

use crate::dataset::Generator;
use crate::options::options;
use crate::{Item, ItemError};

const COLORS: [&str; 16] = [
    "red", "green", "blue", "yellow", "white", "orange", "purple", "pink", "brown", "gray", "cyan",
    "magenta", "gold", "silver", "indigo", "violet",
];
const SIDES: [&str; 6] = ["top", "right", "front", "left", "back", "bottom"];
const TURNS: [[&str; 2]; 5] = [
    ["The cube is rotated so that the side which was before at the ", " is now at the top."],
    ["Then the cube is rotated to bring the ", " side to the top."],
    ["After that the cube is turned to make the ", " face the top."],
    ["Now the cube is rotated to place its ", " side at the top."],
    ["Next, the ", " side is rotated to become the top face."],
];

options! {
    /// Options of `color_cube_rotation`.
    ColorCubeRotationOptions {
        /// Fewest turns, at least 1. Default 1.
        min_rotations: i64 = 1,
        /// Most turns, up to 10000. Default 3.
        max_rotations: i64 = 3,
    }
    |given, problems| {
        problems.span(("min_rotations", "max_rotations"), (given.min_rotations, given.max_rotations), (1, 10_000));
    }
}

/// A cube whose sides have colours, turned several times; the colour of one side is asked for.
pub(crate) struct ColorCubeRotation;

impl Generator for ColorCubeRotation {
    type Options = ColorCubeRotationOptions;

    fn item(options: &ColorCubeRotationOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let mut colors = COLORS;
        rng.shuffle(&mut colors);
        let first = colors;
        let turns = rng.int(options.min_rotations, options.max_rotations)?;
        let mut sides = Vec::with_capacity(turns as usize);
        for _ in 0..turns {
            // All sides but the top.
            let side = 1 + rng.below(5) as usize;
            sides.push(side);
            turn(&mut colors, side);
        }
        let target = rng.below(6) as usize;
        let mut story = "A cube has:".to_owned();
        for (side, color) in SIDES.iter().zip(first) {
            story.push_str(&format!("\n- a {color} {side} side"));
        }
        for (place, side) in sides.into_iter().enumerate() {
            let [before, behind] = match place {
                0 => TURNS[0],
                _ => *rng.choice(&TURNS[1..])?,
            };
            story.push_str(&format!("\n\n{before}{}{behind}", SIDES[side]));
        }
        story.push_str(&format!(
            "\n\nWhat is now the color of the {} side of the cube?\nProvide only the color as your final answer.",
            SIDES[target]
        ));
        Ok(Item::new(story, colors[target]).with("target_side", SIDES[target]))
    }

    fn score(_: &ColorCubeRotationOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer else { return 0.0 };
        if lower(strip(answer)) == item.gold() { 1.0 } else { 0.01 }
    }
}

/// Turns a cube so that a side comes to the top.
fn turn(colors: &mut [&str; 16], side: usize) {
    const TOP: usize = 0;
    const BOTTOM: usize = 5;
    if side == BOTTOM {
        // Over the front: left and right stay.
        colors.swap(TOP, BOTTOM);
        colors.swap(2, 4);
        return;
    }
    let opposite = match side {
        1 => 3,
        2 => 4,
        3 => 1,
        _ => 2,
    };
    let top = colors[TOP];
    colors[TOP] = colors[side];
    colors[side] = colors[BOTTOM];
    colors[BOTTOM] = colors[opposite];
    colors[opposite] = top;
}
