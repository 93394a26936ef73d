//! How strong players are, from games between them.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use super::{Interval, percentile_interval};

/// Steps of the fit at the most, and the change of all strengths below which it ends.
const MAX_STEPS: usize = 10_000;
const ENOUGH: f64 = 1e-10;
/// Draws that are added to every pair that met, where without them no finite rating is the likeliest.
const PRIOR_DRAWS: f64 = 0.5;

/// One game between two players.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Match {
    /// Which games belong together, such as those of one task: they are drawn together by the bootstrap.
    pub cluster: usize,
    /// The two players, by their places.
    pub players: [usize; 2],
    /// What the first of them scored, 0 to 1: 1 for a win, 0.5 for a draw.
    pub score: f64,
}

/// The rating of a player.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// Elo: 400 points are odds of ten to one. The mean of all players is 0.
    pub elo: f64,
    /// Where it lies with 95 % confidence, by a bootstrap over clusters.
    pub interval: Interval,
}

/// Elo ratings by maximum likelihood (Bradley and Terry, 1952), a draw being half a win for each; each with the interval of a bootstrap
/// over clusters of games.
///
/// `P(i beats j) = p_i / (p_i + p_j)`, fitted by minorisation (Hunter, 2004, equation 3): `p_i = W_i / sum_j n_ij / (p_i + p_j)`.
/// Where some players never lose to others, directly or in between, the likelihood has no maximum: then half a draw is added to every pair
/// that met, in draws of the bootstrap as well; whether that was so is the second value. Players who never met, not even by way of others,
/// cannot be compared; each such group has a mean of 0.
pub fn elo_ratings(
    players: usize,
    matches: &[Match],
    draws: usize,
    seed: Seed,
) -> (Vec<Rating>, bool) {
    let (found, is_penalised) = fit(players, matches.iter());
    let clusters = matches.iter().map(|game| game.cluster + 1).max().unwrap_or_default();
    let mut of_cluster: Vec<Vec<&Match>> = vec![Vec::new(); clusters];
    for game in matches {
        of_cluster[game.cluster].push(game);
    }
    of_cluster.retain(|games| !games.is_empty());
    let mut samples = vec![Vec::with_capacity(draws); players];
    let mut rng = seed.rng();
    for _ in 0..if of_cluster.is_empty() { 0 } else { draws } {
        let drawn: Vec<&Match> = (0..of_cluster.len())
            .flat_map(|_| of_cluster[rng.random_range(0..of_cluster.len())].iter().copied())
            .collect();
        let (elos, _) = fit(players, drawn.into_iter());
        samples.iter_mut().zip(elos).for_each(|(sample, elo)| sample.push(elo));
    }
    let ratings = found.into_iter().zip(samples).map(|(elo, sample)| Rating {
        elo,
        interval: percentile_interval(sample).unwrap_or(Interval { low: elo, high: elo }),
    });
    (ratings.collect(), is_penalised)
}

/// The likeliest ratings, and whether draws had to be added.
fn fit<'m>(players: usize, matches: impl Iterator<Item = &'m Match>) -> (Vec<f64>, bool) {
    // Wins of the row over the column, draws as halves.
    let mut wins = vec![vec![0.0; players]; players];
    for Match { players: [one, two], score, .. } in matches {
        wins[*one][*two] += score;
        wins[*two][*one] += 1.0 - score;
    }
    let groups = reachable(players, |one, two| wins[one][two] + wins[two][one] > 0.0);
    let beats = reachable(players, |one, two| wins[one][two] > 0.0);
    let is_bounded = (0..players).all(|one| {
        (0..players).all(|two| !groups[one][two] || (beats[one][two] && beats[two][one]))
    });
    if !is_bounded {
        let met: Vec<(usize, usize)> = (0..players)
            .flat_map(|one| (0..players).map(move |two| (one, two)))
            .filter(|(one, two)| wins[*one][*two] + wins[*two][*one] > 0.0)
            .collect();
        met.into_iter().for_each(|(one, two)| wins[one][two] += PRIOR_DRAWS / 2.0);
    }
    let mut strengths = vec![1.0_f64; players];
    for _ in 0..MAX_STEPS {
        let mut change = 0.0_f64;
        for one in 0..players {
            let others = (0..players).filter(|two| *two != one);
            let (mut won, mut weight) = (0.0, 0.0);
            for two in others {
                let games = wins[one][two] + wins[two][one];
                won += wins[one][two];
                weight += games / (strengths[one] + strengths[two]);
            }
            if weight > 0.0 {
                let next = won / weight;
                change = change.max((next.ln() - strengths[one].ln()).abs());
                strengths[one] = next;
            }
        }
        if change < ENOUGH {
            break;
        }
    }
    let logs: Vec<f64> = strengths.iter().map(|strength| 400.0 * strength.log10()).collect();
    let elo = |one: usize| {
        let group: Vec<usize> =
            (0..players).filter(|two| *two == one || groups[one][*two]).collect();
        logs[one] - group.iter().map(|two| logs[*two]).sum::<f64>() / group.len() as f64
    };
    ((0..players).map(elo).collect(), !is_bounded)
}

/// Which places can be reached from which.
fn reachable(count: usize, is_edge: impl Fn(usize, usize) -> bool) -> Vec<Vec<bool>> {
    let mut reached: Vec<Vec<bool>> = (0..count)
        .map(|one| (0..count).map(|two| one == two || is_edge(one, two)).collect())
        .collect();
    for by in 0..count {
        for one in 0..count {
            for two in 0..count {
                reached[one][two] |= reached[one][by] && reached[by][two];
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn games(results: &[(usize, usize, f64, usize)]) -> Vec<Match> {
        let mut cluster = 0;
        let mut matches = Vec::new();
        for (one, two, score, count) in results {
            for _ in 0..*count {
                matches.push(Match { cluster, players: [*one, *two], score: *score });
                cluster += 1;
            }
        }
        matches
    }

    #[test]
    fn two_players_have_the_odds_that_they_played() {
        let matches = games(&[(0, 1, 1.0, 75), (0, 1, 0.0, 25)]);
        let (ratings, is_penalised) = elo_ratings(2, &matches, 200, Seed::from_u64(1));
        // 400 log10(3).
        assert!((ratings[0].elo - ratings[1].elo - 190.848_501_887).abs() < 1e-6 && !is_penalised);
        assert!((ratings[0].elo + ratings[1].elo).abs() < 1e-9);
        let Interval { low, high } = ratings[0].interval;
        assert!(low < ratings[0].elo && ratings[0].elo < high && high - low < 120.0);
        assert_eq!(elo_ratings(2, &matches, 200, Seed::from_u64(1)).0, ratings);
    }

    #[test]
    fn three_players_are_where_the_likelihood_is_greatest() {
        let matches = games(&[
            (0, 1, 1.0, 7),
            (0, 1, 0.0, 3),
            (1, 2, 1.0, 6),
            (1, 2, 0.5, 2),
            (1, 2, 0.0, 2),
            (0, 2, 1.0, 8),
            (0, 2, 0.0, 2),
        ]);
        let (ratings, _) = elo_ratings(3, &matches, 0, Seed::from_u64(1));
        let likelihood = |elos: [f64; 3]| -> f64 {
            let of_game = |game: &Match| {
                let [one, two] = game.players;
                let chance = 1.0 / (1.0 + 10_f64.powf((elos[two] - elos[one]) / 400.0));
                game.score * chance.ln() + (1.0 - game.score) * (1.0 - chance).ln()
            };
            matches.iter().map(of_game).sum()
        };
        let found = [ratings[0].elo, ratings[1].elo, ratings[2].elo];
        for player in 0..3 {
            for step in [-3.0, 3.0] {
                let mut other = found;
                other[player] += step;
                assert!(likelihood(other) < likelihood(found));
            }
        }
    }

    #[test]
    fn who_never_loses_has_a_finite_rating_and_that_is_told() {
        let matches = games(&[(0, 1, 1.0, 20), (1, 2, 1.0, 4), (1, 2, 0.0, 4)]);
        let (ratings, is_penalised) = elo_ratings(3, &matches, 50, Seed::from_u64(1));
        assert!(is_penalised && ratings.iter().all(|rating| rating.elo.is_finite()));
        assert!(ratings[0].elo > ratings[1].elo + 400.0);
        assert!((ratings[1].elo - ratings[2].elo).abs() < 1e-6);
        let (alone, _) = elo_ratings(3, &[], 50, Seed::from_u64(1));
        assert!(alone.iter().all(|rating| rating.elo == 0.0));
    }
}
