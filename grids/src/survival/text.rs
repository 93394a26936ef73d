//! What is seen, in words and as a map.

use std::fmt::Write as _;

use super::creature::Kind;
use super::{Item, Material, Way, World};

/// How far is seen: columns to each side, and rows.
const SIGHT: (i8, i8) = (4, 3);

/// What stands in sight, by kind.
const CREATURES: [&str; 6] = ["cow", "zombie", "skeleton", "arrow", "sapling", "ripe plant"];

/// What the player sees and has, in sentences: of each material and each kind of creature the nearest in sight (9 columns and 7 rows, as
/// in the package's picture), what is faced, how the player is, and what the player has. The ground that the player stands on is not told.
/// Who sleeps sees nothing.
pub fn describe(world: &World) -> String {
    let mut text = String::with_capacity(320);
    if world.player.is_asleep {
        text.push_str("You are asleep.");
    } else {
        describe_sight(world, &mut text);
        describe_faced(world, &mut text);
    }
    describe_player(world, &mut text);
    text
}

fn describe_sight(world: &World, text: &mut String) {
    // The nearest, and of creatures how many.
    let mut materials: [Option<(i8, i8)>; 12] = [None; 12];
    let mut creatures = [(None, 0_u8); 6];
    let nearer = |than: &mut Option<(i8, i8)>, (x, y): (i8, i8)| {
        if than.is_none_or(|(of_x, of_y)| x.abs() + y.abs() < of_x.abs() + of_y.abs()) {
            *than = Some((x, y));
        }
    };
    for y in -SIGHT.1..=SIGHT.1 {
        for x in -SIGHT.0..=SIGHT.0 {
            let Some(at) = world.beside(world.player.at, (x, y)) else { continue };
            nearer(&mut materials[world.material(at) as usize], (x, y));
            if let Some(creature) = world.creature_at(at) {
                let (nearest, count) = &mut creatures[number_of(creature.kind)];
                nearer(nearest, (x, y));
                *count += 1;
            }
        }
    }
    let mut is_first = true;
    let mut see = |what: std::fmt::Arguments<'_>, (x, y): (i8, i8)| {
        text.push_str(if is_first { "You see " } else { ", " });
        is_first = false;
        let _ = text.write_fmt(what);
        let mut link = " ";
        for (steps, before, behind) in [(x, Way::Left, Way::Right), (y, Way::Up, Way::Down)] {
            if steps != 0 {
                let (way, plural) = (
                    if steps < 0 { before } else { behind },
                    if steps.abs() > 1 { "s" } else { "" },
                );
                let _ = write!(text, "{link}{} step{plural} {}", steps.abs(), way.word());
                link = " and ";
            }
        }
    };
    for material in Material::ALL {
        if let Some(nearest) = materials[material as usize].filter(|nearest| *nearest != (0, 0)) {
            see(format_args!("{}", material.words()), nearest);
        }
    }
    for (name, (nearest, count)) in CREATURES.into_iter().zip(creatures) {
        match (nearest, count) {
            (Some(nearest), 1) => see(format_args!("{} {name}", article(name)), nearest),
            (Some(nearest), _) => see(format_args!("{count} {name}s, the nearest"), nearest),
            (None, _) => {}
        }
    }
    text.push_str(if is_first { "You see nothing else." } else { "." });
}

fn number_of(kind: Kind) -> usize {
    match kind {
        Kind::Cow => 0,
        Kind::Zombie { .. } => 1,
        Kind::Skeleton { .. } => 2,
        Kind::Arrow { .. } => 3,
        Kind::Plant { .. } => 4 + usize::from(kind.is_ripe()),
    }
}

fn article(name: &str) -> &'static str {
    if name.starts_with('a') { "an" } else { "a" }
}

fn describe_faced(world: &World, text: &mut String) {
    let player = &world.player;
    text.push_str("\nYou face ");
    match world.beside(player.at, player.facing.offset()) {
        None => text.push_str("the edge of the world"),
        Some(at) => match world.creature_at(at) {
            Some(creature) => {
                let name = CREATURES[number_of(creature.kind)];
                text.extend([article(name), " ", name]);
            }
            None => text.push_str(world.material(at).words()),
        },
    }
    text.push('.');
}

fn describe_player(world: &World, text: &mut String) {
    let player = &world.player;
    let count = |item: Item| player.count(item);
    let _ = write!(
        text,
        "\nHealth {}, food {}, drink {}, energy {}.",
        count(Item::Health),
        count(Item::Food),
        count(Item::Drink),
        count(Item::Energy)
    );
    if world.is_night() {
        text.push_str(" It is night.");
    }
    let mut link = "\nYou have ";
    for item in Item::ALL.into_iter().filter(|item| !item.is_vital() && count(*item) > 0) {
        let _ = write!(text, "{link}{} {}", count(item), item.words());
        link = ", ";
    }
    if link == ", " {
        text.push('.');
    }
}

/// What is in sight, a letter a cell: `P` the player, `.` grass, `,` path, `:` sand, `~` water, `#` stone, `T` tree, `!` lava, `c` coal, `i`
/// iron, `d` diamond, `t` table, `f` furnace, `C` cow, `Z` zombie, `S` skeleton, `*` arrow, `s` sapling, `R` ripe plant, and a space
/// outside of the world.
pub fn draw(world: &World) -> String {
    let mut text = String::with_capacity(70);
    for y in -SIGHT.1..=SIGHT.1 {
        if y > -SIGHT.1 {
            text.push('\n');
        }
        for x in -SIGHT.0..=SIGHT.0 {
            text.push(match world.beside(world.player.at, (x, y)) {
                None => ' ',
                Some(_) if (x, y) == (0, 0) => 'P',
                Some(at) => match world.creature_at(at) {
                    Some(creature) => ['C', 'Z', 'S', '*', 's', 'R'][number_of(creature.kind)],
                    None => world.material(at).letter(),
                },
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Achievement, Action, next_action};
    use super::*;

    #[test]
    fn what_is_told_is_what_is_drawn() {
        for seed in 0..6 {
            let mut world = World::new(seed, 64).unwrap();
            for number in 0..120_usize {
                let (text, map) = (describe(&world), draw(&world));
                assert_eq!(map.lines().count(), 7);
                assert_eq!(map.chars().nth(3 * 10 + 4), Some('P'));
                if !world.player().is_asleep() {
                    let ground = world.material(world.player().at());
                    for material in Material::ALL.into_iter().filter(|it| *it != ground) {
                        let is_told = text.contains(&format!("{} ", material.words()));
                        assert_eq!(is_told, map.contains(material.letter()), "{text}\n{map}");
                    }
                    assert_eq!(text.contains("zombie"), map.contains('Z'), "{text}\n{map}");
                }
                world.step(Action::ALL[(number * 11 + seed as usize) % 7]);
            }
        }
    }

    #[test]
    fn a_player_who_can_do_something_is_told_so() {
        let mut world = World::new(1, 64).unwrap();
        world.player_mut().give(Item::Wood, 3);
        assert!(describe(&world).ends_with("energy 9.\nYou have 3 wood."), "{}", describe(&world));
        while !world.player().has(Achievement::PlaceTable) {
            world.step(next_action(&world, &[Achievement::PlaceTable]));
        }
        let text = describe(&world);
        assert!(text.contains("You face a table."), "{text}");
        assert!(text.contains("a table 1 step "), "{text}");
    }
}
