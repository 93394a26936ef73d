//! The moves of all seats, made again.

use spar_core::{Boundary, EndReason, Seat, Told, Turn};
use spar_envs::Environment;
use tokio::time::timeout;

use super::TableInProgress;
use crate::episode::ends::{broken, failed, late};

impl TableInProgress<'_> {
    /// Makes all moves again, in an environment that was reset as this one was, and checks that everything comes out as
    /// it did.
    pub(super) async fn replay(&self, environment: &mut dyn Environment) -> Result<(), EndReason> {
        let recorded: Vec<Vec<&Turn>> = self
            .playing
            .iter()
            .map(|playing| match playing {
                Some(playing) => playing.trajectory().acting().chain(playing.acted()).collect(),
                None => Vec::new(),
            })
            .collect();
        let mut made = vec![0; recorded.len()];
        // Whether others have moved since the seat did.
        let mut is_behind = vec![false; recorded.len()];
        let mut is_first = true;
        while let Some(seat) = environment.to_move() {
            let index = seat.index();
            let Some(turns) = recorded.get(index) else { return Err(differs(seat)) };
            let number = made[index];
            let playing = self.playing[index].as_ref();
            let has_left = playing.is_some_and(|playing| playing.end().is_some());
            if number == turns.len() && !has_left {
                break;
            }
            if number == 0 && !is_first {
                let Told { observation, .. } = environment.told(seat);
                let first =
                    self.playing[index].as_ref().map(|it| &it.trajectory().first_observation);
                if first != Some(&observation) {
                    return Err(differs(seat));
                }
            } else if number > 0 && is_behind[index] {
                let Told { mut observation, .. } = environment.told(seat);
                let before = &turns[number - 1].step.observation;
                observation.results.clone_from(&before.results);
                if *before != observation {
                    return Err(differs(seat));
                }
            }
            (is_first, is_behind[index]) = (false, false);
            let Some(turn) = turns.get(number) else {
                // A seat that left has done so once its turns were over.
                environment.forfeit(seat).await.map_err(|error| broken(&error))?;
                if environment.to_move() == Some(seat) {
                    break;
                }
                continue;
            };
            made[index] += 1;
            let Some(action) = turn.parsed.action() else { continue };
            let rules = environment.time_rules();
            let limit = self.seated[index].config.step_timeout(rules);
            let step = match rules.command {
                Some(_) => environment.step(action).await,
                None => timeout(limit, environment.step(action))
                    .await
                    .map_err(|_| late(Boundary::Environment, "make a move again", limit))?,
            };
            let step = step.map_err(|error| broken(&error))?;
            let stays = environment.to_move() == Some(seat);
            is_behind[index] = !stays;
            let is_same = !stays || step.observation == turn.step.observation;
            if step.valid != turn.step.valid || !is_same {
                return Err(differs(seat));
            }
        }
        let all = recorded.iter().map(Vec::len);
        if made.iter().copied().eq(all) { Ok(()) } else { Err(differs(Seat::FIRST)) }
    }
}

fn differs(seat: Seat) -> EndReason {
    let detail = format!(
        "moves were made again, and the environment showed seat {seat} something else than the first time"
    );
    failed(Boundary::Environment, &detail)
}
