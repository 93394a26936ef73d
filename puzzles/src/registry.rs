//! The datasets that have a name.

use std::fmt;

use spar_core::registry::{Axis, Given, OptionSet, Options, Row, RowError, Table};

use crate::dataset::{Generator, Native};
use crate::{
    Dataset, algebra, algorithmic, arithmetic, cognition, games, geometry, graphs, logic,
    probability,
};

/// What opens a dataset.
#[derive(Clone, Copy)]
pub struct NamedDataset {
    /// The package's category, such as `arithmetic`.
    pub category: &'static str,
    /// Opens it with options and a seed.
    pub open: OpenDataset,
}

/// Opens a dataset with options and a seed.
pub type OpenDataset = fn(&Given<'_>, u64) -> Result<Box<dyn Dataset>, RowError>;

impl fmt::Debug for NamedDataset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NamedDataset").field("category", &self.category).finish()
    }
}

/// A dataset that has a name.
pub type DatasetRow = Row<NamedDataset>;

/// A row of a dataset of the package.
pub(crate) const fn row<G: Generator>(
    name: &'static str,
    category: &'static str,
    about: &'static str,
) -> DatasetRow {
    Row {
        name,
        about,
        source: "reasoning-gym 0.1.25, github.com/open-thought/reasoning-gym",
        formula: "",
        options: OptionSet::of::<G::Options>(),
        open: NamedDataset {
            category,
            open: |given, seed| {
                Ok(Box::new(Native::<G> { seed, options: given.read::<G::Options>()? }))
            },
        },
    }
}

const AXIS: Axis = Axis {
    name: "datasets",
    what: "dataset",
    about: "Kinds of puzzles from seeds, equal to reasoning-gym's.",
};

const ROWS: &[DatasetRow] = &[
    row::<arithmetic::gcd::Gcd>(
        "gcd",
        "arithmetic",
        "Several numbers, whose greatest common divisor is asked for.",
    ),
    row::<arithmetic::lcm::Lcm>(
        "lcm",
        "arithmetic",
        "Several numbers, whose least common multiple is asked for.",
    ),
    row::<arithmetic::count_bits::CountBits>(
        "count_bits",
        "arithmetic",
        "The ones in the binary form of a number.",
    ),
    row::<arithmetic::chain_sum::ChainSum>(
        "chain_sum",
        "arithmetic",
        "A chain of additions and subtractions.",
    ),
    row::<arithmetic::products::Products>(
        "products",
        "arithmetic",
        "Whole numbers to be multiplied.",
    ),
    row::<arithmetic::prime_factorization::PrimeFactorization>(
        "prime_factorization",
        "arithmetic",
        "A number to be written as the product of its prime factors.",
    ),
    row::<arithmetic::leg_counting::LegCounting>(
        "leg_counting",
        "arithmetic",
        "The legs of a list of animals.",
    ),
    row::<arithmetic::dice::Dice>(
        "dice",
        "arithmetic",
        "The odds of rolling so much or more with several dice.",
    ),
    row::<arithmetic::fraction_simplification::FractionSimplification>(
        "fraction_simplification",
        "arithmetic",
        "A fraction to be brought to its lowest terms.",
    ),
    row::<cognition::color_cube_rotation::ColorCubeRotation>(
        "color_cube_rotation",
        "cognition",
        "A cube with coloured sides that is turned several times.",
    ),
    row::<cognition::modulo_grid::ModuloGrid>(
        "modulo_grid",
        "cognition",
        "A grid marked by a rule about remainders, with holes to be filled.",
    ),
    row::<cognition::number_sequence::NumberSequence>(
        "number_sequence",
        "cognition",
        "The next term of a sequence whose rule has a few steps.",
    ),
    row::<cognition::rectangle_count::RectangleCount>(
        "rectangle_count",
        "cognition",
        "Overlapping rectangles drawn with characters, to be counted.",
    ),
    row::<arithmetic::basic_arithmetic::BasicArithmetic>(
        "basic_arithmetic",
        "arithmetic",
        "An expression of whole numbers, in parentheses or not.",
    ),
    row::<arithmetic::bitwise_arithmetic::BitwiseArithmetic>(
        "bitwise_arithmetic",
        "arithmetic",
        "Sums, products and shifts of hexadecimal numbers.",
    ),
    row::<arithmetic::calendar_arithmetic::CalendarArithmetic>(
        "calendar_arithmetic",
        "arithmetic",
        "Questions about dates and weekdays.",
    ),
    row::<arithmetic::decimal_arithmetic::DecimalArithmetic>(
        "decimal_arithmetic",
        "arithmetic",
        "An expression of decimal numbers.",
    ),
    row::<arithmetic::decimal_chain_sum::DecimalChainSum>(
        "decimal_chain_sum",
        "arithmetic",
        "A chain of additions and subtractions of decimal numbers.",
    ),
    row::<arithmetic::number_format::NumberFormat>(
        "number_format",
        "arithmetic",
        "The largest or smallest of numbers in several notations.",
    ),
    row::<arithmetic::power_function::PowerFunction>(
        "power_function",
        "arithmetic",
        "A decimal number to the power of a whole one.",
    ),
    row::<arithmetic::time_intervals::TimeIntervals>(
        "time_intervals",
        "arithmetic",
        "The time between two moments.",
    ),
    row::<algorithmic::ab::Ab>(
        "ab",
        "algorithmic",
        "A program of A::B, whose last state is asked for.",
    ),
    row::<algorithmic::base_conversion::BaseConversion>(
        "base_conversion",
        "algorithmic",
        "A number of one base, to be written in another.",
    ),
    row::<algorithmic::binary_alternation::BinaryAlternation>(
        "binary_alternation",
        "algorithmic",
        "The fewest swaps that make a string of bits alternate.",
    ),
    row::<algorithmic::binary_matrix::BinaryMatrix>(
        "binary_matrix",
        "algorithmic",
        "The distance of the next 0 for each cell of a matrix.",
    ),
    row::<algorithmic::count_primes::CountPrimes>(
        "count_primes",
        "algorithmic",
        "The primes between two numbers.",
    ),
    row::<algorithmic::cryptarithm::Cryptarithm>(
        "cryptarithm",
        "algorithmic",
        "A sum whose digits are letters.",
    ),
    row::<algorithmic::game_of_life::GameOfLife>(
        "game_of_life",
        "algorithmic",
        "A board of the Game of Life some steps later.",
    ),
    row::<algorithmic::graph_color::GraphColor>(
        "graph_color",
        "algorithmic",
        "Colours for a graph, no two neighbours the same.",
    ),
    row::<algorithmic::jugs::Jugs>(
        "jugs",
        "algorithmic",
        "Jugs of water, of which one is to hold a target.",
    ),
    row::<algorithmic::manipulate_matrix::ManipulateMatrix>(
        "manipulate_matrix",
        "algorithmic",
        "A matrix that is turned, mirrored and cropped in steps.",
    ),
    row::<algorithmic::number_filtering::NumberFiltering>(
        "number_filtering",
        "algorithmic",
        "Numbers above or below a value, kept or removed.",
    ),
    row::<algorithmic::number_sorting::NumberSorting>(
        "number_sorting",
        "algorithmic",
        "Numbers to be sorted.",
    ),
    row::<algorithmic::palindrome_generation::PalindromeGeneration>(
        "palindrome_generation",
        "algorithmic",
        "Letters of which a palindrome is to be formed.",
    ),
    row::<algorithmic::palindrome_partitioning::PalindromePartitioning>(
        "palindrome_partitioning",
        "algorithmic",
        "All partitions of a string into palindromes.",
    ),
    row::<algorithmic::rotate_matrix::RotateMatrix>(
        "rotate_matrix",
        "algorithmic",
        "A matrix to be turned by quarters.",
    ),
    row::<algorithmic::rotten_oranges::RottenOranges>(
        "rotten_oranges",
        "algorithmic",
        "Minutes until all oranges of a grid are rotten.",
    ),
    row::<algorithmic::spiral_matrix::SpiralMatrix>(
        "spiral_matrix",
        "algorithmic",
        "The numbers of a matrix in a spiral.",
    ),
    row::<algorithmic::string_insertion::StringInsertion>(
        "string_insertion",
        "algorithmic",
        "Letters put into a string behind some of its parts.",
    ),
    row::<algorithmic::string_manipulation::StringManipulation>(
        "string_manipulation",
        "algorithmic",
        "A string that rules change until none applies.",
    ),
    row::<algorithmic::string_splitting::StringSplitting>(
        "string_splitting",
        "algorithmic",
        "Machines taken apart by rules.",
    ),
    row::<algorithmic::string_synthesis::StringSynthesis>(
        "string_synthesis",
        "algorithmic",
        "Blocks put together by rules.",
    ),
    row::<algebra::complex_arithmetic::ComplexArithmetic>(
        "complex_arithmetic",
        "algebra",
        "Two complex numbers and an operation.",
    ),
    row::<algebra::simple_equations::SimpleEquations>(
        "simple_equations",
        "algebra",
        "A linear equation with one variable.",
    ),
    row::<graphs::course_schedule::CourseSchedule>(
        "course_schedule",
        "graphs",
        "Whether courses with prerequisites can all be taken.",
    ),
    row::<graphs::family_relationships::FamilyRelationships>(
        "family_relationships",
        "graphs",
        "How one member of a family is related to another.",
    ),
    row::<graphs::largest_island::LargestIsland>(
        "largest_island",
        "graphs",
        "The area of the largest island of a grid.",
    ),
    row::<graphs::path_star::PathStar>(
        "path_star",
        "graphs",
        "The path to a goal in a star of paths.",
    ),
    row::<graphs::quantum_lock::QuantumLock>(
        "quantum_lock",
        "graphs",
        "Buttons that bring a number to a target, by the colour of a light.",
    ),
    row::<graphs::shortest_path::ShortestPath>(
        "shortest_path",
        "graphs",
        "The shortest way through a grid.",
    ),
    row::<probability::coin_flip::CoinFlip>(
        "coin_flip",
        "probability",
        "The probability of so many heads of several coins.",
    ),
    row::<geometry::simple_geometry::SimpleGeometry>(
        "simple_geometry",
        "geometry",
        "The last angle of a polygon.",
    ),
    row::<logic::aiw::Aiw>(
        "aiw",
        "logic",
        "Questions about siblings, friends and colleagues that are easily got wrong.",
    ),
    row::<logic::circuit_logic::CircuitLogic>(
        "circuit_logic",
        "logic",
        "The output of a circuit that is drawn with characters.",
    ),
    row::<logic::propositional_logic::PropositionalLogic>(
        "propositional_logic",
        "logic",
        "A conclusion from premises.",
    ),
    row::<logic::self_reference::SelfReference>(
        "self_reference",
        "logic",
        "In how many ways statements about themselves can be true.",
    ),
    row::<logic::syllogism::Syllogism>(
        "syllogism",
        "logic",
        "Whether a statement follows from two others.",
    ),
    row::<games::kakurasu::Kakurasu>(
        "kakurasu",
        "games",
        "Ones in a grid, by weighted sums of its rows and columns.",
    ),
    row::<games::mahjong::MahjongPuzzle>(
        "mahjong_puzzle",
        "games",
        "What the last card of several rounds makes.",
    ),
    row::<games::maze::Maze>("maze", "games", "The steps to the goal of a maze."),
    row::<games::mini_sudoku::MiniSudoku>(
        "mini_sudoku",
        "games",
        "A Sudoku of four by four cells.",
    ),
    row::<games::n_queens::NQueens>("n_queens", "games", "A board of queens to be completed."),
    row::<games::sudoku::Sudoku>("sudoku", "games", "A Sudoku of nine by nine cells."),
    row::<games::survo::Survo>(
        "survo",
        "games",
        "Numbers to be put into a matrix so that its sums come out.",
    ),
    row::<games::tower_of_hanoi::TowerOfHanoi>(
        "tower_of_hanoi",
        "games",
        "Disks to be moved from one peg to another.",
    ),
    row::<games::tsumego::Tsumego>("tsumego", "games", "The move that captures stones of Go."),
];

static TABLE: Table<NamedDataset> = Table::new(AXIS, ROWS);

/// All datasets; a new one is one file and one row here.
pub fn dataset_registry() -> &'static Table<NamedDataset> {
    &TABLE
}

/// Opens a dataset by its name, with options as they were written and a seed.
///
/// # Errors
///
/// [`RowError`] where there is no such dataset, or its options are not these.
pub fn open_dataset(
    name: &str,
    options: &Options,
    seed: u64,
) -> Result<Box<dyn Dataset>, RowError> {
    let (row, given) = dataset_registry().choose(name, options)?;
    (row.open.open)(&given, seed)
}
