//! The programs of the Berkeley Function-Calling Leaderboard, and how its answers are checked.
