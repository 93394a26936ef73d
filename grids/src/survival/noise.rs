//! Noise in space.

/// OpenSimplex noise in three dimensions (K. Spencer, 2014), which Crafter lays its terrain by.
///
/// Space is filled with a cubic lattice that is squashed along its main diagonal, so that its cells fall into two tetrahedra and an octahedron. Each
/// lattice point has a slope by the seed, which counts as far as `sqrt(2)` from it. Of the points around a place those of its tetrahedron
/// or octahedron count, and two more, which are chosen by which of them are the closest; where a third were near enough, it is left out,
/// as in the reference.
pub(super) struct Noise {
    order: [u8; 256],
}

const STRETCH: f64 = -1.0 / 6.0;
const SQUISH: f64 = 1.0 / 3.0;
/// What the sum is divided by, so that it is about -1 to 1.
const SCALE: f64 = 103.0;

/// Corners of a cell.
const LOW: [[i32; 3]; 4] = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]];
const MIDDLE: [[i32; 3]; 6] = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]];
const HIGH: [[i32; 3]; 4] = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]];

impl Noise {
    /// Noise of a seed: a shuffle by a linear congruential generator.
    pub(super) fn new(seed: i64) -> Self {
        let next = |state: i64| {
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
        };
        let mut state = next(next(next(seed)));
        let mut left: [u8; 256] = std::array::from_fn(|at| at as u8);
        let mut order = [0; 256];
        for at in (0..256_usize).rev() {
            state = next(state);
            let drawn = (i128::from(state) + 31).rem_euclid(at as i128 + 1) as usize;
            order[at] = left[drawn];
            left[drawn] = left[at];
        }
        Self { order }
    }

    /// Noise at a place.
    pub(super) fn at(&self, place: [f64; 3]) -> f64 {
        let stretch = (place[0] + place[1] + place[2]) * STRETCH;
        let stretched = place.map(|it| it + stretch);
        let base = stretched.map(f64::floor);
        let inside: [f64; 3] = std::array::from_fn(|axis| stretched[axis] - base[axis]);
        let squish = (base[0] + base[1] + base[2]) * SQUISH;
        let offset: [f64; 3] = std::array::from_fn(|axis| place[axis] - (base[axis] + squish));
        let base = base.map(|it| it as i32);
        let sum = inside[0] + inside[1] + inside[2];
        let (corners, more): (&[_], _) = if sum <= 1.0 {
            (&LOW, beyond_tetrahedron(inside, 1.0 - sum))
        } else if sum >= 2.0 {
            // The tetrahedron at the far corner is the near one seen from there.
            let seen = beyond_tetrahedron(inside.map(|it| -it), sum - 3.0);
            (&HIGH, seen.map(|point| point.map(|it| 1 - it)))
        } else {
            (&MIDDLE, beyond_octahedron(inside))
        };
        let of = |point: &[i32; 3]| self.of_point(base, offset, *point);
        corners.iter().chain(&more).map(of).sum::<f64>() / SCALE
    }

    /// What a lattice point contributes, which lies `point` from the base of a cell, whose place is `offset` from it.
    fn of_point(&self, base: [i32; 3], offset: [f64; 3], point: [i32; 3]) -> f64 {
        let squish = f64::from(point[0] + point[1] + point[2]) * SQUISH;
        let to: [f64; 3] =
            std::array::from_fn(|axis| offset[axis] - f64::from(point[axis]) - squish);
        let strength = 2.0 - to[0] * to[0] - to[1] * to[1] - to[2] * to[2];
        if strength <= 0.0 {
            return 0.0;
        }
        let hash = |before: i32, axis: usize| {
            i32::from(self.order[((before + base[axis] + point[axis]) & 0xff) as usize])
        };
        // 24 slopes: in each octant three, a long component along one axis.
        let number = hash(hash(hash(0, 0), 1), 2) % 24;
        let (octant, long) = (number / 3, number as usize % 3);
        let negative = [octant & 1 == 0, octant & 2 != 0, octant & 4 != 0];
        let along = |axis: usize| {
            let length = if axis == long { 11.0 } else { 4.0 };
            to[axis] * if negative[axis] { -length } else { length }
        };
        let squared = strength * strength;
        squared * squared * (along(0) + along(1) + along(2))
    }
}

/// Two points beyond the tetrahedron at the base. `near` tells how near the three corners beside the base are, `near_base` the base.
fn beyond_tetrahedron(near: [f64; 3], near_base: f64) -> [[i32; 3]; 2] {
    // The two nearest of the three.
    let [x, y, z] = near;
    let (a, b) = if x >= y && z > y {
        (0, 2)
    } else if x < y && z > x {
        (2, 1)
    } else {
        (0, 1)
    };
    if near_base > near[a] || near_base > near[b] {
        let nearest = if near[b] > near[a] { b } else { a };
        let others = match nearest {
            0 => [1, 2],
            1 => [0, 2],
            _ => [0, 1],
        };
        others.map(|other| {
            let mut point = [0; 3];
            (point[nearest], point[other]) = (1, -1);
            point
        })
    } else {
        let third = 3 - a - b;
        [0, -1].map(|beyond| {
            let mut point = [1; 3];
            point[third] = beyond;
            point
        })
    }
}

/// Two points beyond the octahedron, by which two of its corners are the nearest.
fn beyond_octahedron([x, y, z]: [f64; 3]) -> [[i32; 3]; 2] {
    // Of each pair of opposite corners the nearer: its axis is the one that is set alone, or alone not set on the far side.
    let nearer = |sum: f64, axis: usize| {
        if sum > 1.0 { (sum - 1.0, axis, true) } else { (1.0 - sum, axis, false) }
    };
    let (mut a, mut b) = (nearer(x + y, 2), nearer(x + z, 1));
    let c = nearer(y + z, 0);
    if a.0 <= b.0 && a.0 < c.0 {
        a = c;
    } else if a.0 > b.0 && b.0 < c.0 {
        b = c;
    }
    let only = |axis: usize, there: i32, elsewhere: i32| {
        let mut point = [elsewhere; 3];
        point[axis] = there;
        point
    };
    match (a, b) {
        // The axis that both have.
        ((_, a, true), (_, b, true)) => [[1, 1, 1], only(3 - a - b, 2, 0)],
        // The axis that both lack.
        ((_, a, false), (_, b, false)) => [[0, 0, 0], only(3 - a - b, -1, 1)],
        ((_, far, true), (_, near, false)) | ((_, near, false), (_, far, true)) => {
            [only(far, -1, 1), only(near, 2, 0)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_that_of_the_package() {
        // `opensimplex.OpenSimplex(seed).noise3(x, y, z)` of opensimplex 0.4.5.1, at a few hundred places.
        let recorded = include_str!("../../tests/fixtures/opensimplex.json");
        let recorded: Vec<(i64, [f64; 3], f64)> = serde_json::from_str(recorded).unwrap();
        assert!(recorded.len() >= 300);
        for (seed, place, value) in recorded {
            let found = Noise::new(seed).at(place);
            assert!((found - value).abs() < 1e-14, "{found} for {value} at {place:?} of {seed}");
        }
    }
}
