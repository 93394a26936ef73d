//! Angles of polygons.

use crate::prelude::*;

options! {
    /// Options of `simple_geometry`.
    SimpleGeometryOptions {
        /// Fewest sides, at least 3. Default 3.
        min_sides: i64 = 3,
        /// Most sides, up to 1000. Default 6.
        max_sides: i64 = 6,
        /// Least known angle in degrees, 1 to 179. Default 10.
        min_angle: i64 = 10,
        /// Largest known angle in degrees, up to 179. Default 170.
        max_angle: i64 = 170,
    }
    |given, problems| {
        problems.span(("min_sides", "max_sides"), (given.min_sides, given.max_sides), (3, 1_000));
        problems.span(("min_angle", "max_angle"), (given.min_angle, given.max_angle), (1, 179));
    }
}

/// A polygon of whose angles all but one are known.
pub(crate) struct SimpleGeometry;

impl Generator for SimpleGeometry {
    type Options = SimpleGeometryOptions;

    fn item(options: &SimpleGeometryOptions, rng: &mut Random) -> Result<Item, ItemError> {
        const MOST_TRIES: u64 = 100;
        const RULE: &str =
            "Return only the angle as your answer.Do not give the units in your answer.";
        let sides = rng.int(options.min_sides, options.max_sides)?;
        let all = 180 * (sides - 2);
        for _ in 0..MOST_TRIES {
            let mut angles = Vec::new();
            for _ in 1..sides {
                angles.push(rng.int(options.min_angle, options.max_angle)?);
            }
            let known: i64 = angles.iter().sum();
            if known >= all {
                continue;
            }
            let (others, told) =
                (sides - 1, joined(angles.iter().map(|angle| format!("{angle}.0°")), ", "));
            let question = match rng.below(3) {
                0 => format!(
                    "Given a convex polygon with {sides} sides, its first {others} interior angles are: {told}. What is the measure of the remaining interior angle (in degrees)?{RULE}"
                ),
                1 => format!(
                    "A convex polygon has {sides} sides. The measures of the first {others} interior angles are: {told}. Find the measure of the last interior angle.{RULE}"
                ),
                _ => format!(
                    "Consider a convex {sides}-gon whose first {others} interior angles are: {told}. Determine the measure of the remaining angle.{RULE}"
                ),
            };
            return Ok(Item::new(question, all - known));
        }
        Err(ItemError::TooManyTries { tries: MOST_TRIES })
    }
}
