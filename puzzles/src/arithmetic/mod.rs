//! Puzzles of arithmetic.

pub(crate) mod basic_arithmetic;
pub(crate) mod bitwise_arithmetic;
pub(crate) mod calendar_arithmetic;
pub(crate) mod chain_sum;
pub(crate) mod count_bits;
pub(crate) mod decimal_arithmetic;
pub(crate) mod decimal_chain_sum;
pub(crate) mod dice;
pub(crate) mod fraction_simplification;
pub(crate) mod gcd;
pub(crate) mod lcm;
pub(crate) mod leg_counting;
pub(crate) mod number_format;
pub(crate) mod power_function;
pub(crate) mod prime_factorization;
pub(crate) mod products;
pub(crate) mod time_intervals;
