//! Secret mafia: a talk game of hidden roles, of a village and of those who kill at night.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, last_of_first_line, value};
use crate::table::{MessageKind, Seating, Table};
use crate::text::AddPiece;

const NAME: &str = "secret-mafia";
/// The most bytes of what is said that others hear, from its end on, as characters of TextArena's wrapper.
const MAX_HEARD: usize = 1000;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    num_players: usize,
    mafia_ratio: f64,
    discussion_rounds: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { num_players: 6, mafia_ratio: 0.25, discussion_rounds: 3 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Villager,
    Mafia,
    Doctor,
    Detective,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    NightMafia,
    NightDoctor,
    NightDetective,
    DayDiscussion,
    DayVoting,
}

#[derive(Debug, Clone)]
struct SecretMafia {
    settings: Settings,
    roles: Vec<Role>,
    alive: Vec<usize>,
    phase: Phase,
    /// Who is still to act in this phase, from the last on.
    queue: Vec<usize>,
    /// Votes in the order in which players first voted.
    votes: Vec<(usize, usize)>,
    pending: Option<usize>,
    /// Whom the detective has looked at.
    investigated: Vec<usize>,
    /// Whom somebody has called mafia in so many words.
    accused: Vec<usize>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("num_players", settings.num_players), 6..=15)?;
    check_range(NAME, ("mafia_ratio", settings.mafia_ratio), 0.0..=0.5)?;
    check_range(NAME, ("discussion_rounds", settings.discussion_rounds), 1..=20)?;
    Ok(Box::new(SecretMafia {
        settings,
        roles: Vec::new(),
        alive: Vec::new(),
        phase: Phase::NightMafia,
        queue: Vec::new(),
        votes: Vec::new(),
        pending: None,
        investigated: Vec::new(),
        accused: Vec::new(),
    }))
}

/// What `\[(?:player\s*)?(\d+)\]` with `IGNORECASE` takes.
fn player_in<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    if cursor.word("player") {
        cursor.spaces();
    }
    let digits = cursor.digits()?;
    cursor.take(']').then_some(digits)
}

fn list(players: impl Iterator<Item = usize>, around: [&str; 2]) -> String {
    let mut named = String::new();
    for player in players {
        named.add(if named.is_empty() { "" } else { ", " });
        named.add(around[0]).add(player).add(around[1]);
    }
    named
}

impl SecretMafia {
    fn is_mafia(&self, player: usize) -> bool {
        self.roles[player] == Role::Mafia
    }

    fn living(&self, role: Role) -> Option<usize> {
        self.alive.iter().copied().find(|player| self.roles[*player] == role)
    }

    fn prompt(&self, player: usize) -> String {
        let count = self.settings.num_players;
        let rounds = self.settings.discussion_rounds;
        let (name, team, description) = match self.roles[player] {
            Role::Villager => (
                "Villager",
                "Village",
                "A regular villager. Your goal is to identify and eliminate all Mafia members through voting during the day.",
            ),
            Role::Mafia => {
                ("Mafia", "Mafia", "A Mafia member. Eliminate villagers and gain majority.")
            }
            Role::Doctor => {
                ("Doctor", "Village", "Protect one player each night from Mafia elimination.")
            }
            Role::Detective => {
                ("Detective", "Village", "Investigate players to find Mafia members.")
            }
        };
        let head = format!(
            "Welcome to Secret Mafia! You are Player {player}.\n\
             Your role: {name}\nTeam: {team}\nDescription: {description}\n\nPlayers: {}\n\n",
            list(0..count, ["Player ", ""])
        );
        let rest = match self.roles[player] {
            Role::Villager => format!(
                "The game progresses through Day and Night phases.\n\
                 - During the Day phase, there are {rounds} rounds of discussion followed by voting.\n\
                 - During discussions, everything you say is automatically broadcasted to all players.\n\
                 - After discussions, all players must vote to eliminate one player.\n\
                 - During the Night phase, you have no special actions.\n\n\
                 The game ends when either all Mafia members are eliminated (Village wins) or\n\
                 Mafia members equal or outnumber Villagers (Mafia wins).\n"
            ),
            Role::Mafia => format!(
                "Your teammates are: {}.\n\n\
                 During DAY phase: Speak freely and vote.\n\
                 During NIGHT phase: '[Player X]' to vote and eliminate a villager.\n\
                 Win by eliminating villagers until Mafia equal or outnumber them.\n",
                list((0..count).filter(|other| self.is_mafia(*other)), ["Player ", ""])
            ),
            Role::Doctor => "During DAY phase: Speak freely and vote.\n\
                 During NIGHT phase: '[Player X]' to protect a player.\n\
                 Win by identifying and eliminating all Mafia members.\n"
                .to_owned(),
            Role::Detective => "During DAY phase: Speak freely and vote.\n\
                 During NIGHT phase: '[Player X]' to investigate.\n\
                 You'll learn immediately if the target is Mafia.\n\
                 Win by identifying and eliminating all Mafia members.\n"
                .to_owned(),
        };
        head + &rest
    }

    fn next_phase(&self) -> Phase {
        let has = |role: Role| self.living(role).is_some();
        match self.phase {
            Phase::NightMafia if has(Role::Doctor) => Phase::NightDoctor,
            Phase::NightMafia | Phase::NightDoctor if has(Role::Detective) => Phase::NightDetective,
            Phase::NightMafia | Phase::NightDoctor | Phase::NightDetective => Phase::DayDiscussion,
            Phase::DayDiscussion => Phase::DayVoting,
            Phase::DayVoting => Phase::NightMafia,
        }
    }

    /// Tells who is asked now, and queues them.
    fn begin_phase(&mut self, table: &mut Table) {
        let alive = self.alive.clone();
        let fits = "no more are drawn than live";
        match self.phase {
            Phase::NightMafia => {
                let mafia: Vec<usize> =
                    alive.iter().copied().filter(|player| self.is_mafia(*player)).collect();
                let targets = alive.iter().copied().filter(|player| !self.is_mafia(*player));
                let targets = list(targets, ["[", "]"]);
                for player in &mafia {
                    table.say_to_with(Some(*player), MessageKind::Message, |text| {
                        text.add("Night has fallen. Mafia, agree on a victim.\nValid targets: ");
                        text.add(&*targets);
                    });
                }
                self.queue = table.rng.sample(&mafia, mafia.len()).expect(fits);
            }
            Phase::NightDoctor | Phase::NightDetective => {
                let (role, what) = match self.phase {
                    Phase::NightDoctor => (Role::Doctor, "protect"),
                    _ => (Role::Detective, "investigate"),
                };
                let player = self.living(role).expect("its phase is left out where it is dead");
                let others = list(alive.iter().copied().filter(|it| *it != player), ["[", "]"]);
                table.say_to_with(Some(player), MessageKind::Message, |text| {
                    text.add("Night phase - choose one player to ").add(what).add(": ");
                    text.add(&*others);
                });
                self.queue = vec![player];
            }
            Phase::DayDiscussion => {
                let rounds = self.settings.discussion_rounds;
                table.say_with(MessageKind::Message, |text| {
                    text.add("Day breaks. Discuss for ").add(rounds);
                    text.add(" rounds, then a vote will follow.");
                });
                self.queue = table.rng.sample(&alive, alive.len()).expect(fits).repeat(rounds);
            }
            Phase::DayVoting => {
                let options = list(alive.iter().copied(), ["[", "]"]);
                table.say_with(MessageKind::Message, |text| {
                    text.add("Voting phase - submit one vote in format [X]. Valid: ");
                    text.add(&*options);
                });
                self.queue = table.rng.sample(&alive, alive.len()).expect(fits);
            }
        }
    }

    /// The living player that an action names.
    fn target(&self, action: &str) -> Option<usize> {
        let number = value(last_of_first_line(action, player_in)?);
        usize::try_from(number).ok().filter(|player| self.alive.contains(player))
    }

    fn mark_invalid(&mut self, table: &mut Table, why: &str) {
        let player = table.current;
        if table.invalid(format_args!("{why}")) {
            self.eliminate(table, player, "has been eliminated by making an invalid move.");
        }
    }

    fn eliminate(&mut self, table: &mut Table, player: usize, reason: &str) {
        self.alive.retain(|other| *other != player);
        table.say_with(MessageKind::Message, |text| {
            text.add("Player ").add(player).add(' ').add(reason).add('.');
        });
        let mafia = self.alive.iter().filter(|player| self.is_mafia(**player)).count();
        let roles = self.roles.clone();
        let is_mafia = move |player: usize| roles.get(player) == Some(&Role::Mafia);
        if mafia == 0 {
            let reason = "All Mafia were eliminated. Village wins!";
            table.set_winners(|player| !is_mafia(player), reason);
        } else if 2 * mafia >= self.alive.len() {
            let reason = "Mafia reached parity with villagers. Mafia wins!";
            table.set_winners(is_mafia, reason);
        }
    }

    /// The player with the most votes; of several, one is drawn.
    fn tally(&mut self, table: &mut Table) -> Option<usize> {
        let mut counts: Vec<(usize, usize)> = Vec::new();
        for (_, target) in self.votes.drain(..) {
            match counts.iter_mut().find(|(other, _)| *other == target) {
                Some((_, count)) => *count += 1,
                None => counts.push((target, 1)),
            }
        }
        let most = counts.iter().map(|(_, count)| *count).max()?;
        let top: Vec<usize> =
            counts.into_iter().filter(|(_, count)| *count == most).map(|(it, _)| it).collect();
        table.rng.choice(&top).ok().copied()
    }

    /// Who is next, or what the phase came to.
    fn go_on(&mut self, table: &mut Table) {
        if table.was_invalid {
            return;
        }
        if let Some(next) = self.queue.pop() {
            return table.pass_to(next);
        }
        match self.phase {
            Phase::DayVoting => match self.tally(table) {
                None => table.say(
                    MessageKind::Message,
                    format_args!("No consensus - nobody was eliminated."),
                ),
                Some(player) => self.eliminate(table, player, "was eliminated by vote"),
            },
            Phase::NightMafia => self.pending = self.tally(table),
            Phase::NightDoctor | Phase::NightDetective
                if self.next_phase() == Phase::DayDiscussion =>
            {
                match self.pending.take() {
                    None => {
                        table.say(MessageKind::Message, format_args!("No one was killed tonight."));
                    }
                    Some(player) => self.eliminate(table, player, "was killed during the night"),
                }
            }
            _ => {}
        }
        if table.is_over() {
            return;
        }
        self.phase = self.next_phase();
        self.begin_phase(table);
        let next = self.queue.pop().expect("every phase has somebody to ask");
        table.pass_to(next);
    }

    fn vote(&mut self, table: &mut Table, action: &str) {
        let player = table.current;
        let Some(target) = self.target(action) else {
            return self.mark_invalid(table, "Vote not in valid format or invalid target.");
        };
        match self.votes.iter_mut().find(|(voter, _)| *voter == player) {
            Some((_, vote)) => *vote = target,
            None => self.votes.push((player, target)),
        }
        if self.phase == Phase::DayVoting {
            return table.pass_on(player, None, action);
        }
        for other in self.alive.iter().filter(|other| self.is_mafia(**other)) {
            if *other != player {
                table.pass_on(player, Some(*other), action);
            }
        }
    }

    /// One of these players, by luck.
    fn one_of(players: &[usize], luck: f64) -> Option<usize> {
        players.get((luck * players.len() as f64) as usize).or(players.first()).copied()
    }
}

/// The end of what was said.
fn heard(action: &str) -> &str {
    if action.len() <= MAX_HEARD {
        return action;
    }
    let count = action.chars().count();
    match count.checked_sub(MAX_HEARD).filter(|more| *more > 0) {
        None => action,
        Some(more) => action.char_indices().nth(more).map_or("", |(at, _)| &action[at..]),
    }
}

impl Rules for SecretMafia {
    fn seating(&self) -> Seating {
        Seating::Teams
    }

    fn num_players(&self) -> usize {
        self.settings.num_players
    }

    fn begin(&mut self, table: &mut Table) {
        let count = table.num_players();
        let mafia = (count as f64 * self.settings.mafia_ratio).round_ties_even().max(1.0) as usize;
        self.roles = vec![Role::Mafia; mafia];
        self.roles.extend([Role::Doctor, Role::Detective]);
        self.roles.resize(count, Role::Villager);
        table.rng.shuffle(&mut self.roles);
        self.alive = (0..count).collect();
        self.phase = Phase::NightMafia;
        self.votes.clear();
        self.pending = None;
        self.investigated.clear();
        self.accused.clear();
        for player in 0..count {
            let prompt = self.prompt(player);
            table.say_to(Some(player), MessageKind::Prompt, format_args!("{prompt}"));
        }
        self.begin_phase(table);
        let first = self.queue.pop().expect("there is a mafia");
        table.pass_to(first);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let action = heard(action);
        let player = table.current;
        match self.phase {
            Phase::DayDiscussion => {
                // Most of what is said accuses nobody.
                if action.contains(" is Mafia") {
                    let is_accused =
                        |other: &usize| action.contains(&format!("Player {other} is Mafia"));
                    self.accused.extend((0..table.num_players()).find(is_accused));
                }
                table.pass_on(player, None, action);
            }
            Phase::DayVoting | Phase::NightMafia => self.vote(table, action),
            Phase::NightDoctor => match self.target(action) {
                None => self.mark_invalid(table, "Invalid protection target."),
                target => {
                    if target == self.pending {
                        self.pending = None;
                    }
                }
            },
            Phase::NightDetective => match self.target(action) {
                None => self.mark_invalid(table, "Invalid investigation target."),
                Some(target) => {
                    self.investigated.push(target);
                    let is = if self.is_mafia(target) { "IS" } else { "IS NOT" };
                    table.say_to_with(Some(player), MessageKind::Message, |text| {
                        text.add("Player ").add(target).add(' ').add(is).add(" a Mafia member.");
                    });
                }
            },
        }
        self.go_on(table);
        table.end_move(false);
    }

    fn legal(&self, table: &Table) -> Option<Vec<String>> {
        if self.phase == Phase::DayDiscussion {
            return None;
        }
        let others = self.alive.iter().filter(|player| **player != table.current);
        Some(others.map(|player| format!("[{player}]")).collect())
    }

    /// The mafia kill and accuse by chance; the detective tells whom it found; the village votes for whom somebody has
    /// called mafia, else by chance.
    fn expert(&mut self, table: &Table, luck: f64) -> Option<String> {
        let player = table.current;
        let role = self.roles[player];
        let found = || {
            self.investigated
                .iter()
                .rev()
                .copied()
                .find(|it| self.is_mafia(*it) && self.alive.contains(it))
        };
        if self.phase == Phase::DayDiscussion {
            return Some(match (role, found()) {
                (Role::Detective, Some(mafia)) => format!("Player {mafia} is Mafia."),
                _ => "I have seen nothing.".to_owned(),
            });
        }
        let others: Vec<usize> = self.alive.iter().copied().filter(|it| *it != player).collect();
        let target = match role {
            Role::Mafia => {
                let village: Vec<usize> =
                    others.iter().copied().filter(|it| !self.is_mafia(*it)).collect();
                Self::one_of(&village, luck)?
            }
            Role::Detective if self.phase == Phase::NightDetective => {
                let unknown: Vec<usize> =
                    (others.iter().copied()).filter(|it| !self.investigated.contains(it)).collect();
                Self::one_of(if unknown.is_empty() { &others } else { &unknown }, luck)?
            }
            Role::Detective if found().is_some() => found()?,
            _ => {
                let accused = self.accused.iter().rev().copied().find(|it| others.contains(it));
                match accused.filter(|_| self.phase == Phase::DayVoting) {
                    Some(accused) => accused,
                    None => Self::one_of(&others, luck)?,
                }
            }
        };
        Some(format!("[{target}]"))
    }

    /// Who knows all roles: the village votes for mafia, the mafia kill the detective first.
    fn oracle(&mut self, table: &Table) -> Option<String> {
        let player = table.current;
        if self.phase == Phase::DayDiscussion {
            return self.expert(table, 0.5);
        }
        let is_mafia = self.is_mafia(player);
        let mut others = self.alive.iter().copied().filter(|it| *it != player);
        let target = match (self.phase, is_mafia) {
            (Phase::NightDoctor, _) => self.pending.filter(|it| *it != player).or(others.next()),
            (_, false) => others.find(|it| self.is_mafia(*it)),
            (_, true) => self
                .living(Role::Detective)
                .or(self.living(Role::Doctor))
                .or_else(|| others.find(|it| !self.is_mafia(*it))),
        };
        target.map(|target| format!("[{target}]"))
    }

    /// Who leaves is out, as by an invalid move too many.
    fn forfeit(&mut self, table: &mut Table, player: usize) {
        self.eliminate(table, player, "has left");
        self.queue.retain(|other| *other != player);
        if !table.is_over() && table.current == player {
            self.go_on(table);
        }
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
