//! Who takes the seats of environments in which several act.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spar_core::SeatSpec;
use spar_envs::actions_of_task;
use spar_tasks::Task;

use crate::policies::RandomPolicy;
use crate::{ConfigError, EpisodeConfig, Guide, SharedPlayer};

/// Who takes the seats of environments in which several act; nothing of it matters where one does.
///
/// A seat that nobody is named for is taken by whom its [environment names](SeatSpec::player). The trajectories of the
/// seats that are *grouped* are compared, trained and scored, those of each seat among themselves; by default these are
/// the seats that the collection's own player takes.
#[derive(Clone, Default)]
pub struct Seating {
    players: Arc<BTreeMap<String, SeatPlayer>>,
    grouped: Arc<BTreeSet<String>>,
}

/// Who takes a seat.
#[derive(Clone)]
pub struct SeatPlayer {
    /// The player. Absent: the collection's own, as in self-play.
    pub player: Option<SharedPlayer>,
    /// How the task is put to it. Absent: as it is to the collection's own player, or where this one is the
    /// environment's own or draws at random, in words.
    pub episode: Option<EpisodeConfig>,
}

impl SeatPlayer {
    /// The collection's own player.
    pub fn own() -> Self {
        Self { player: None, episode: None }
    }

    /// Another player.
    pub fn other(player: SharedPlayer) -> Self {
        Self { player: Some(player), episode: None }
    }

    /// A player that needs no model, by its name: `self`, `random`, or one of an environment's own; `None` where there is
    /// none of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            SeatSpec::SELF => return Some(Self::own()),
            "random" => return Some(Self::other(SharedPlayer::of(RandomPolicy))),
            _ => {}
        }
        let guide = Guide::ALL.into_iter().find(|guide| guide.name() == name)?;
        Some(Self::other(guide.player(None)))
    }

    /// The names of those that [`SeatPlayer::named`] knows.
    pub const NAMES: [&'static str; 4] = [SeatSpec::SELF, "random", "oracle", "expert"];
}

/// A seat with who takes it.
#[derive(Clone)]
pub(crate) struct TakenSeat {
    pub(crate) name: String,
    pub(crate) player: SharedPlayer,
    pub(crate) config: Arc<EpisodeConfig>,
    /// Whether its trajectories are in the group.
    pub(crate) is_grouped: bool,
}

impl Seating {
    /// Seats by their names with who takes them, and the seats that are grouped; none of these where all are that the
    /// collection's own player takes.
    pub fn new(
        players: BTreeMap<String, SeatPlayer>,
        grouped: impl IntoIterator<Item = String>,
    ) -> Self {
        Self { players: Arc::new(players), grouped: Arc::new(grouped.into_iter().collect()) }
    }

    /// All that is wrong with it for environments that have these seats, each environment behind its name: seats that
    /// none of them has, and environments in which no seat is left for the collection's own player.
    pub fn problems(&self, environments: &[(String, Vec<SeatSpec>)]) -> Vec<String> {
        let several = environments.iter().filter(|(_, seats)| seats.len() > 1);
        let mut problems = self.unknown(environments);
        for (environment, seats) in several {
            let own: Vec<&SeatSpec> = seats.iter().filter(|seat| self.is_own(seat)).collect();
            if own.is_empty() {
                problems.push(format!(
                    "environment `{environment}`: no seat is left for `self`, who is trained or evaluated"
                ));
            }
            let is_strange = |seat: &&SeatSpec| self.grouped.contains(&*seat.name);
            for seat in seats.iter().filter(is_strange).filter(|seat| !self.is_own(seat)) {
                problems.push(format!(
                    "seat `{}` is not `self`'s, so nothing can be learned from it",
                    seat.name
                ));
            }
        }
        problems
    }

    /// The seats that it names and none of these environments has.
    pub fn unknown(&self, environments: &[(String, Vec<SeatSpec>)]) -> Vec<String> {
        let several = environments.iter().filter(|(_, seats)| seats.len() > 1);
        let known: BTreeSet<&str> =
            several.flat_map(|(_, seats)| seats).map(|seat| &*seat.name).collect();
        let named: BTreeSet<&String> = self.players.keys().chain(self.grouped.iter()).collect();
        let tell = |name: &&String| {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            match known.is_empty() {
                true => format!(
                    "there is no seat `{name}`: one acts in these tasks, who takes no seat by name"
                ),
                false => format!("there is no seat `{name}`; there are {}", known.join(", ")),
            }
        };
        let unknown = named.iter().filter(|name| !known.contains(name.as_str()));
        unknown.map(tell).collect()
    }

    /// Checks it, as [`Seating::problems`] tells.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] lists all problems.
    pub fn validate(&self, environments: &[(String, Vec<SeatSpec>)]) -> Result<(), ConfigError> {
        ConfigError::refuse(self.problems(environments))
    }

    /// Whether the collection's own player takes a seat.
    pub fn is_own(&self, seat: &SeatSpec) -> bool {
        match self.players.get(&*seat.name) {
            Some(taken) => taken.player.is_none(),
            None => seat.player == SeatSpec::SELF,
        }
    }

    /// Who takes the seats of a task's environment; an error says why nobody could.
    pub(crate) fn taken(
        &self,
        task: &Task,
        seats: &[SeatSpec],
        own: &SharedPlayer,
        config: &EpisodeConfig,
    ) -> Result<Vec<TakenSeat>, String> {
        let config = Arc::new(config.clone());
        let has_words = actions_of_task(task).is_none_or(|actions| actions.has_words());
        let in_words = || {
            Arc::new(EpisodeConfig {
                max_turns: config.max_turns,
                turn_timeout_secs: config.turn_timeout_secs,
                command_time_secs: config.command_time_secs,
                ..EpisodeConfig::default()
            })
        };
        // Other environments of the suite may have other seats.
        let are_named = seats.iter().any(|seat| self.grouped.contains(&*seat.name));
        let mut taken = Vec::with_capacity(seats.len());
        for seat in seats {
            let unknown = || {
                format!(
                    "seat `{}` has the default player `{}`, who is unknown",
                    seat.name, seat.player
                )
            };
            let player = match self.players.get(&*seat.name) {
                Some(player) => player.clone(),
                None => SeatPlayer::named(&seat.player).ok_or_else(unknown)?,
            };
            let is_own = player.player.is_none();
            let is_named = !are_named || self.grouped.contains(&*seat.name);
            let is_plain = player.player.as_ref().is_some_and(needs_no_model);
            taken.push(TakenSeat {
                name: seat.name.clone().into_owned(),
                config: match player.episode {
                    Some(episode) => Arc::new(episode),
                    None if is_plain && has_words => in_words(),
                    None => Arc::clone(&config),
                },
                player: player.player.unwrap_or_else(|| own.clone()),
                is_grouped: is_own && is_named,
            });
        }
        match taken.iter().any(|seat| seat.is_grouped) {
            true => Ok(taken),
            false => Err("no seat is left for `self`, who is trained or evaluated".to_owned()),
        }
    }
}

/// Whether a player is the environment's own or draws at random.
fn needs_no_model(player: &SharedPlayer) -> bool {
    match player {
        SharedPlayer::Policy(policy) => policy.name() == "random",
        SharedPlayer::Oracle { .. } | SharedPlayer::Expert { .. } => true,
        SharedPlayer::Noisy { policy, .. } => policy.name() == "random",
        SharedPlayer::RollIn { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_environment::fake_task;

    const SEATS: [SeatSpec; 2] = [
        SeatSpec::new("agent", "Who helps.", SeatSpec::SELF),
        SeatSpec::new("user", "Who asks.", "expert"),
    ];

    fn environments() -> Vec<(String, Vec<SeatSpec>)> {
        vec![("talk".to_owned(), SEATS.to_vec()), ("alone".to_owned(), SeatSpec::ONE.to_vec())]
    }

    fn seating(players: &[(&str, &str)], grouped: &[&str]) -> Seating {
        let player =
            |(seat, name): &(&str, &str)| ((*seat).to_owned(), SeatPlayer::named(name).unwrap());
        Seating::new(players.iter().map(player).collect(), grouped.iter().map(ToString::to_string))
    }

    #[test]
    fn seats_are_taken_as_their_environment_says_unless_somebody_is_named() {
        let own = SharedPlayer::of(crate::policies::ScriptedPolicy::new(["hello"]));
        let config = EpisodeConfig { max_turns: Some(3), ..EpisodeConfig::default() };
        let taken = |seating: &Seating| {
            let taken = seating.taken(&fake_task(0), &SEATS, &own, &config).unwrap();
            taken
                .iter()
                .map(|it| (it.player.as_player().name().to_owned(), it.is_grouped))
                .collect::<Vec<_>>()
        };
        let by_default = [("scripted".to_owned(), true), ("expert".to_owned(), false)];
        assert_eq!(taken(&Seating::default()), by_default);
        let both = [("scripted".to_owned(), true), ("scripted".to_owned(), true)];
        assert_eq!(taken(&seating(&[("user", "self")], &[])), both);
        let one = [("scripted".to_owned(), false), ("scripted".to_owned(), true)];
        assert_eq!(taken(&seating(&[("user", "self")], &["user"])), one);
        let nobody = seating(&[("agent", "random")], &[]);
        assert!(nobody.taken(&fake_task(0), &SEATS, &own, &config).is_err());
    }

    #[test]
    fn what_no_environment_has_is_told_before_anything_is_played() {
        let told = |players: &[(&str, &str)], grouped: &[&str]| {
            seating(players, grouped).problems(&environments())
        };
        assert!(told(&[], &[]).is_empty() && told(&[("user", "random")], &["agent"]).is_empty());
        assert!(told(&[("chair", "random")], &[])[0].contains("there are `agent`, `user`"));
        assert!(told(&[("agent", "oracle")], &[])[0].contains("no seat is left for `self`"));
        assert!(told(&[], &["user"])[0].contains("is not `self`'s"));
        let alone = seating(&[("x", "random")], &[]).problems(&environments()[1..]);
        assert!(alone[0].contains("one acts in these tasks"), "{alone:?}");
    }
}
