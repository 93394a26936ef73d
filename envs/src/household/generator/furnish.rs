//! Objects for an empty room.

use rand::seq::IteratorRandom;
use rand::{Rng, RngExt};

use super::goal::Goal;
use super::layout::RoomSize;
use super::object_types::{Abilities, object_type_named};
use super::rooms::RoomKind;
use super::scene::{Object, Scene};
use crate::household::TaskFamily;

/// Lamps that light tasks can be done with.
const LAMP: &str = "DeskLamp";

/// Fills an empty room and draws a goal for it.
///
/// `None` when the room has no goal of this family.
pub(super) fn furnish(
    scene: &mut Scene<'static>,
    family: Option<TaskFamily>,
    size: RoomSize,
    rng: &mut impl Rng,
) -> Option<Goal> {
    for row in scene.room.objects() {
        let needed = family == Some(TaskFamily::LookAtObjInLight) && row.name == LAMP;
        let count = if needed { 1 } else { row.draw_count(rng) };
        let abilities = object_type_named(row.name).map(|kind| kind.abilities).unwrap_or_default();
        let place = row.places.iter().any(|(kind, _)| scene.has_receptacle(kind));
        // One lamp and one television are enough.
        let count = if abilities.has(Abilities::PICKUPABLE) { count } else { count.min(1) };
        for _ in 0..if place { count } else { 0 } {
            let (places, state, is_fixed) = (Vec::new(), None, false);
            scene.objects.push(Object { kind: row.name, abilities, places, state, is_fixed });
        }
    }
    // Goals are drawn from what lies somewhere, so everything is laid out once before.
    scene.lay_out(None, rng);
    let goal = Goal::draw(scene, family, rng)?;
    let max_objects = size.max_receptacles().saturating_mul(2).max(8);
    thin_out(scene, &goal, max_objects, rng);
    scene.lay_out(Some(&goal), rng);
    Some(goal)
}

/// Takes away objects that the goal does not need until at most `max_objects` are left.
fn thin_out(scene: &mut Scene<'_>, goal: &Goal, max_objects: usize, rng: &mut impl Rng) {
    while scene.objects.len() > max_objects {
        let removable =
            scene.objects.iter().enumerate().filter(|(_, object)| {
                object.kind != goal.object && object.kind != goal.destination
            });
        let Some(chosen) = removable.map(|(index, _)| index).choose(rng) else { return };
        scene.objects.remove(chosen);
    }
}

/// The kinds of rooms that tasks of a family come from, with how often they do.
pub(super) fn draw_room_kind(family: TaskFamily, rng: &mut impl Rng) -> RoomKind {
    use RoomKind::{Bathroom, Bedroom, Kitchen, LivingRoom};
    let shares: &[(RoomKind, u32)] = match family {
        TaskFamily::PickAndPlaceSimple => {
            &[(Kitchen, 30), (Bathroom, 30), (Bedroom, 20), (LivingRoom, 20)]
        }
        TaskFamily::LookAtObjInLight => &[(Bedroom, 80), (LivingRoom, 20)],
        TaskFamily::PickCleanThenPlaceInRecep => &[(Kitchen, 80), (Bathroom, 20)],
        TaskFamily::PickHeatThenPlaceInRecep | TaskFamily::PickCoolThenPlaceInRecep => {
            &[(Kitchen, 100)]
        }
        TaskFamily::PickTwoObjAndPlace => {
            &[(Kitchen, 20), (Bathroom, 30), (Bedroom, 20), (LivingRoom, 30)]
        }
    };
    let mut ticket = rng.random_range(0..100);
    for (kind, share) in shares {
        if ticket < *share {
            return *kind;
        }
        ticket -= share;
    }
    shares[0].0
}
