//! What seats have earned and were not told of yet.

use spar_core::{RewardPart, Seat};

/// What seats have earned by others' moves and were not told of yet, for environments in which several act.
///
/// ```
/// use spar_core::Seat;
/// use spar_envs::SeatAccounts;
///
/// let mut accounts = SeatAccounts::new(2);
/// accounts.pay_zero_sum("outcome", Seat(0), Seat(1));
/// assert_eq!(accounts.take(Seat(1))[0].value, -1.0);
/// assert!(accounts.take(Seat(1)).is_empty(), "nobody is paid twice");
/// assert_eq!(accounts.take(Seat(0))[0].value, 1.0);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeatAccounts(Vec<Vec<RewardPart>>);

impl SeatAccounts {
    /// Empty accounts of so many seats.
    pub fn new(seats: usize) -> Self {
        Self(vec![Vec::new(); seats])
    }

    /// Pays a seat a named part.
    ///
    /// # Panics
    ///
    /// Where there is no such seat.
    pub fn pay(&mut self, seat: Seat, name: &str, value: f64) {
        self.0[seat.index()].push(RewardPart { name: name.to_owned(), value });
    }

    /// Pays the winner 1 and the loser -1 under one name.
    ///
    /// # Panics
    ///
    /// Where there is no such seat.
    pub fn pay_zero_sum(&mut self, name: &str, winner: Seat, loser: Seat) {
        self.pay(winner, name, 1.0);
        self.pay(loser, name, -1.0);
    }

    /// Hands over what a seat has, which is none then.
    ///
    /// # Panics
    ///
    /// Where there is no such seat.
    pub fn take(&mut self, seat: Seat) -> Vec<RewardPart> {
        std::mem::take(&mut self.0[seat.index()])
    }
}
