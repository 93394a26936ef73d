//! What is seen, in words and as maps.

use std::fmt::Write as _;

use super::episode::Episode;
use super::object::{Cell, Color, DoorState, Kind, Position};
use super::view::{VIEW_SIZE, View};
use super::world::World;

const KINDS: [&str; 10] = ["", "", "wall", "floor", "door", "key", "ball", "box", "goal", "lava"];
const COLORS: [&str; 6] = ["red", "green", "blue", "purple", "yellow", "grey"];
const STATES: [&str; 3] = ["open", "closed", "locked"];
const LAST: usize = VIEW_SIZE - 1;
const MIDDLE: usize = VIEW_SIZE / 2;

/// What an agent sees as the sentences of BabyAI-Text, without their full stops: what it carries, walls straight ahead and
/// at its sides with nothing between, and all else column by column. Its grammar is kept, `a open door` included.
pub fn describe(episode: &Episode) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some([kind, color, _]) = episode.carrying() {
        sentences.push(format!(
            "You carry a {} {}",
            COLORS[usize::from(color)],
            KINDS[usize::from(kind)]
        ));
    }
    describe_view(&episode.view(), &mut sentences);
    sentences
}

fn describe_view(view: &View, sentences: &mut Vec<String>) {
    let mut wall = |way: &str, codes: &mut dyn Iterator<Item = [u8; 3]>| {
        if let Some((steps, code)) = (1..).zip(codes).find(|(_, code)| code[0] > 1)
            && code[0] == Kind::Wall as u8
        {
            sentences.push(format!("You see a wall {}", steps_to(steps, way)));
        }
    };
    wall("forward", &mut (0..LAST).rev().map(|row| view.code(MIDDLE, row)));
    wall("left", &mut (0..MIDDLE).rev().map(|column| view.code(column, LAST)));
    wall("right", &mut (MIDDLE + 1..VIEW_SIZE).map(|column| view.code(column, LAST)));
    for column in 0..VIEW_SIZE {
        for row in 0..VIEW_SIZE {
            let [kind, color, state] = view.code(column, row);
            if kind <= Kind::Wall as u8 || (column, row) == (MIDDLE, LAST) {
                continue;
            }
            let mut sentence = "You see a ".to_owned();
            if kind == Kind::Door as u8 {
                sentence.push_str(STATES[usize::from(state)]);
                sentence.push(' ');
            }
            let (color, kind) = (COLORS[usize::from(color)], KINDS[usize::from(kind)]);
            let _ = write!(sentence, "{color} {kind} ");
            let ahead = LAST - row;
            if column != MIDDLE {
                let way = if column > MIDDLE { "right" } else { "left" };
                sentence.push_str(&steps_to(column.abs_diff(MIDDLE), way));
                if ahead > 0 {
                    sentence.push_str(" and ");
                }
            }
            if ahead > 0 {
                sentence.push_str(&steps_to(ahead, "forward"));
            }
            sentences.push(sentence);
        }
    }
}

fn steps_to(steps: usize, way: &str) -> String {
    format!("{steps} step{} {way}", if steps > 1 { "s" } else { "" })
}

/// Two letters of a cell: the kind and the colour; doors `D` closed, `L` locked and `__` open.
fn letters(kind: Option<Kind>, color: Option<Color>, door: DoorState) -> [char; 2] {
    let Some((kind, color)) = kind.zip(color) else { return [' ', ' '] };
    let color = match color {
        Color::Red => 'R',
        Color::Green | Color::Grey => 'G',
        Color::Blue => 'B',
        Color::Purple => 'P',
        Color::Yellow => 'Y',
    };
    let kind = match (kind, door) {
        (Kind::Door, DoorState::Open) => return ['_', '_'],
        (Kind::Door, DoorState::Locked) => 'L',
        (Kind::Door, DoorState::Closed) => 'D',
        (Kind::Wall, _) => 'W',
        (Kind::Key, _) => 'K',
        (Kind::Ball, _) => 'A',
        (Kind::Box, _) => 'B',
        (Kind::Goal, _) => 'G',
        (Kind::Lava, _) => 'V',
    };
    [kind, color]
}

fn cell_letters(world: &World, cell: Cell) -> [char; 2] {
    let door = world.object(cell).map_or(DoorState::Open, |object| object.door);
    letters(world.kind(cell), world.color(cell), door)
}

/// The whole grid, two letters a cell, as the package prints it: kind and colour of what stands there (`W` wall, `D`
/// closed door, `L` locked door, `__` open door, `K` key, `A` ball, `B` box, `G` goal, `V` lava), and the agent as `>>`, `VV`, `<<` or `^^`.
pub fn draw_world(episode: &Episode) -> String {
    let world = episode.world();
    let mut text = String::with_capacity((world.width as usize * 2 + 1) * world.height as usize);
    for y in 0..world.height {
        if y > 0 {
            text.push('\n');
        }
        for x in 0..world.width {
            let at = Position { x, y };
            let pair = if at == world.agent {
                [['>', 'V', '<', '^'][usize::from(world.direction & 3)]; 2]
            } else {
                cell_letters(world, world.get(at))
            };
            text.extend(pair);
        }
    }
    text
}

/// What is seen, two letters a cell, as [`draw_world`] has them: what cannot be seen is `??`, and the agent is `^^`.
pub fn draw_view(view: &View) -> String {
    const BY_CODE: [Option<Kind>; 10] = [
        None,
        None,
        Some(Kind::Wall),
        None,
        Some(Kind::Door),
        Some(Kind::Key),
        Some(Kind::Ball),
        Some(Kind::Box),
        Some(Kind::Goal),
        Some(Kind::Lava),
    ];
    const COLOR_BY_CODE: [Color; 6] =
        [Color::Red, Color::Green, Color::Blue, Color::Purple, Color::Yellow, Color::Grey];
    let mut text = String::with_capacity((VIEW_SIZE * 2 + 1) * VIEW_SIZE);
    for row in 0..VIEW_SIZE {
        if row > 0 {
            text.push('\n');
        }
        for column in 0..VIEW_SIZE {
            let [kind, color, state] = view.code(column, row);
            let door = [DoorState::Open, DoorState::Closed, DoorState::Locked][usize::from(state)];
            text.extend(match (column, row) {
                (MIDDLE, LAST) => ['^', '^'],
                _ if kind == 0 => ['?', '?'],
                _ => letters(
                    BY_CODE[usize::from(kind)],
                    Some(COLOR_BY_CODE[usize::from(color)]),
                    door,
                ),
            });
        }
    }
    text
}
