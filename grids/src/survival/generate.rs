//! How a world is laid out.

use super::Material;
use super::creature::Kind;
use super::noise::Noise;
use super::world::World;

impl World {
    /// Lays the ground around the player by noise, and puts creatures on it.
    pub(super) fn generate(&mut self) {
        let noise = Terrain(Noise::new(self.rng.up_to((1 << 31) - 2) as i64));
        let size = self.size();
        let mut materials = Vec::with_capacity(size * size);
        let mut tunnels = vec![false; size * size];
        for x in 0..size {
            for y in 0..size {
                let (material, is_tunnel) = self.ground(&noise, x, y);
                tunnels[materials.len()] = is_tunnel;
                materials.push(material);
            }
        }
        self.set_materials(materials);
        for x in 0..self.size {
            for y in 0..self.size {
                self.settle((x, y), tunnels[usize::from(x) * size + usize::from(y)]);
            }
        }
    }

    fn distance_to_player(&self, x: usize, y: usize) -> f64 {
        let (columns, rows) =
            (x.abs_diff(self.player.at.0.into()), y.abs_diff(self.player.at.1.into()));
        ((columns * columns + rows * rows) as f64).sqrt()
    }

    /// What a cell is made of, and whether it is a tunnel. Numbers are drawn only where they decide.
    fn ground(&mut self, noise: &Terrain, x: usize, y: usize) -> (Material, bool) {
        let (column, row) = (x as f64, y as f64);
        let at = |z: f64, size: f64| noise.at(column, row, z, size);
        let start = 4.0 - self.distance_to_player(x, y) + 2.0 * at(8.0, 3.0);
        let start = 1.0 / (1.0 + (-start).exp());
        let water = at(3.0, 15.0) + 0.15 * at(3.0, 5.0) + 0.1 - 2.0 * start;
        let mountain = (at(0.0, 15.0) + 0.3 * at(0.0, 5.0)) / 1.3 - (4.0 * start + 0.3 * water);
        let mut exceeds = |bound: f64| self.rng.random() > bound;
        let material = if start > 0.5 {
            Material::Grass
        } else if mountain > 0.15 {
            let is_cave = at(6.0, 7.0) > 0.15 && mountain > 0.3;
            if is_cave {
                Material::Path
            } else if noise.at(2.0 * column, row / 5.0, 7.0, 3.0) > 0.4
                || noise.at(column / 5.0, 2.0 * row, 7.0, 3.0) > 0.4
            {
                return (Material::Path, true);
            } else if at(1.0, 8.0) > 0.0 && exceeds(0.85) {
                Material::Coal
            } else if at(2.0, 6.0) > 0.4 && exceeds(0.75) {
                Material::Iron
            } else if mountain > 0.18 && exceeds(0.994) {
                Material::Diamond
            } else if mountain > 0.3 && at(6.0, 5.0) > 0.35 {
                Material::Lava
            } else {
                Material::Stone
            }
        } else if 0.25 < water && water <= 0.35 && at(4.0, 9.0) > -0.2 {
            Material::Sand
        } else if 0.3 < water {
            Material::Water
        } else if at(5.0, 7.0) > 0.0 && exceeds(0.8) {
            Material::Tree
        } else {
            Material::Grass
        };
        (material, false)
    }

    /// Puts a creature into a cell, or none.
    fn settle(&mut self, at: (u8, u8), is_tunnel: bool) {
        let distance = self.distance_to_player(at.0.into(), at.1.into());
        let material = self.material(at);
        if !material.is_walkable() {
            return;
        }
        let mut exceeds = |bound: f64| self.rng.random() > bound;
        if distance > 3.0 && material == Material::Grass && exceeds(0.985) {
            self.add(Kind::Cow, at);
        } else if distance > 10.0 && exceeds(0.993) {
            self.add(Kind::Zombie { cooldown: 0 }, at);
        } else if material == Material::Path && is_tunnel && exceeds(0.95) {
            self.add(Kind::Skeleton { reload: 0 }, at);
        }
    }
}

/// Noise on levels of their own, at sizes in cells.
struct Terrain(Noise);

impl Terrain {
    fn at(&self, x: f64, y: f64, level: f64, size: f64) -> f64 {
        self.0.at([x / size, y / size, level])
    }
}
