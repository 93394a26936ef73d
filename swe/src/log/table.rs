use std::fmt;

use super::parsers;
use super::reading::{LogReading, Reader};
use super::{LogError, StatusMap};

/// Whose parser it is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// SWE-bench 5, package `swebench` 5.0.2.
    SweBench,
    /// SWE-bench up to 4, package `swebench` 4.1.0; of those that 5 has otherwise only.
    SweBench4,
    /// SWE-rebench V2, `lib/agent/log_parsers.py`, of those that SWE-bench has otherwise or not at all.
    SweRebench,
    /// SWE-smith, package `swesmith` 0.0.9; the names are its functions', or those of SWE-bench for the same runner.
    SweSmith,
    /// R2E-Gym, `execution_log_parser.py`.
    R2eGym,
    /// terminal-bench 1.
    TerminalBench,
}

impl Origin {
    /// The origin in whose table a name is looked up when this one has none of its own.
    const fn parent(self) -> Option<Self> {
        match self {
            Self::SweBench4 => Some(Self::SweBench),
            Self::SweRebench => Some(Self::SweBench4),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SweBench => "SWE-bench 5",
            Self::SweBench4 => "SWE-bench 4",
            Self::SweRebench => "SWE-rebench V2",
            Self::SweSmith => "SWE-smith",
            Self::R2eGym => "R2E-Gym",
            Self::TerminalBench => "terminal-bench 1",
        })
    }
}

/// What a few parsers look at beside the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogContext<'c> {
    /// `instance_id` of the row; jekyll's and immutable.js's runners depend on it.
    pub instance_id: &'c str,
    /// `version` of the row; lighthouse's and next's runners depend on it.
    pub version: &'c str,
}

/// A parser of logs that has a name.
#[derive(Clone, Copy)]
pub struct LogParser {
    /// Whose it is.
    pub origin: Origin,
    /// As rows name it, such as `parse_log_pytest`.
    pub name: &'static str,
    /// What it reads, as a sentence.
    pub about: &'static str,
    pub(super) open: fn(&LogContext<'_>) -> Result<Reader, LogError>,
}

impl fmt::Debug for LogParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogParser({:?}, {})", self.origin, self.name)
    }
}

impl LogParser {
    /// Begins to read a log that comes in pieces.
    ///
    /// # Errors
    ///
    /// [`LogError::Malformed`] where the original knows no instance of that name or version.
    pub fn open(&self, context: &LogContext<'_>) -> Result<LogReading, LogError> {
        (self.open)(context).map(LogReading::new)
    }

    /// Reads a log.
    ///
    /// # Errors
    ///
    /// [`LogError`] where the original raises, and where a bound is passed.
    pub fn parse(&self, log: &str, context: &LogContext<'_>) -> Result<StatusMap, LogError> {
        let mut reading = self.open(context)?;
        reading.push(log);
        reading.finish()
    }
}

/// Finds a parser by its name: `SweRebench` also has SWE-bench's up to 4, and those have what did not change until 5.
///
/// # Errors
///
/// [`LogError::UnknownParser`] lists the names of that origin.
pub fn find_log_parser(origin: Origin, name: &str) -> Result<&'static LogParser, LogError> {
    let mut next = Some(origin);
    while let Some(current) = next {
        let mut rows = LOG_PARSERS.iter().filter(|row| row.origin == current);
        if let Some(row) = rows.find(|row| row.name == name) {
            return Ok(row);
        }
        next = current.parent();
    }
    let mut known = Vec::new();
    next = Some(origin);
    while let Some(current) = next {
        let rows = LOG_PARSERS.iter().filter(|row| row.origin == current);
        known.extend(rows.map(|row| row.name));
        next = current.parent();
    }
    known.sort_unstable();
    known.dedup();
    Err(LogError::UnknownParser { name: name.to_owned(), origin, known })
}

/// All parsers; a new one is a function of its family's file and a row here.
pub static LOG_PARSERS: &[LogParser] = &[
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_pytest",
        about: "pytest's summary; the name is one word.",
        open: |_| Ok(parsers::pytest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_astroid",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_flask",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_marshmallow",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_pvlib",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_pyvista",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_sqlfluff",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_xarray",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_pytest_options",
        about: "pytest's summary; of parameters that are paths the last part is kept.",
        open: |_| Ok(parsers::pytest::options()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_pydicom",
        about: "As `parse_log_pytest_options`.",
        open: |_| Ok(parsers::pytest::options()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_requests",
        about: "As `parse_log_pytest_options`.",
        open: |_| Ok(parsers::pytest::options()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_pylint",
        about: "As `parse_log_pytest_options`.",
        open: |_| Ok(parsers::pytest::options()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_pytest_v2",
        about: "pytest's summary or lines of progress, with colours; the name is all of the line.",
        open: |_| Ok(parsers::pytest::v2()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_astropy",
        about: "As `parse_log_pytest_v2`.",
        open: |_| Ok(parsers::pytest::v2()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_scikit",
        about: "As `parse_log_pytest_v2`.",
        open: |_| Ok(parsers::pytest::v2()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_sphinx",
        about: "As `parse_log_pytest_v2`.",
        open: |_| Ok(parsers::pytest::v2()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_matplotlib",
        about: "pytest's summary, with mouse buttons as numbers.",
        open: |_| Ok(parsers::pytest::matplotlib()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_seaborn",
        about: "pytest's failures and lines of progress.",
        open: |_| Ok(parsers::seaborn::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_sympy",
        about: "sympy's own runner.",
        open: |_| Ok(parsers::sympy::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_django",
        about: "unittest under Django, `-v 2`.",
        open: |_| Ok(Reader::Whole(parsers::django::swe_bench)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_cargo",
        about: "`cargo test`.",
        open: |_| Ok(parsers::cargo::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_gotest",
        about: "`go test -v`; subtests are left out.",
        open: |_| Ok(parsers::go::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_redis",
        about: "`runtest` of redis and valkey.",
        open: |_| Ok(parsers::native::redis()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_jq",
        about: "Automake's `PASS:` and `FAIL:`.",
        open: |_| Ok(parsers::native::jq()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_micropython_test",
        about: "`run-tests.py` of micropython.",
        open: |_| Ok(parsers::native::micropython()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_googletest",
        about: "GoogleTest.",
        open: |_| Ok(parsers::native::googletest()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_doctest",
        about: "doctest for C++ with `-s -r=xml`.",
        open: |_| Ok(Reader::Whole(parsers::xml::doctest)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_maven",
        about: "Maven, a build per test with `set -x`, streams in any order.",
        open: |_| Ok(parsers::maven::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_ant",
        about: "JUnit under Ant.",
        open: |_| Ok(parsers::ant::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_gradle_custom",
        about: "Gradle that prints every test, the word perhaps on a later line.",
        open: |_| Ok(parsers::gradle::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_phpunit",
        about: "PHPUnit with `--testdox`.",
        open: |_| Ok(parsers::php::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_minitest",
        about: "minitest, verbose.",
        open: |_| Ok(parsers::ruby::minitest()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_cucumber",
        about: "cucumber with `--format progress`.",
        open: |_| Ok(parsers::ruby::cucumber()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_ruby_unit",
        about: "test-unit, verbose.",
        open: |_| Ok(parsers::ruby::unit()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_rspec_transformed_json",
        about: "RSpec's JSON, rewritten as `<name> - passed`.",
        open: |_| Ok(parsers::ruby::rspec()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_jekyll",
        about: "minitest or cucumber, by the instance.",
        open: |context| parsers::ruby::jekyll(context),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_jest",
        about: "Jest with `--verbose`.",
        open: |_| Ok(parsers::jest::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_jest_json",
        about: "Jest's JSON, rewritten as `[PASSED] <name>`.",
        open: |_| Ok(parsers::jest::json()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_vitest",
        about: "vitest with `--reporter=verbose`.",
        open: |_| Ok(parsers::jest::vitest()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_karma",
        about: "Karma as preact has it, names behind those of their suites.",
        open: |_| Ok(parsers::karma::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_tap",
        about: "TAP.",
        open: |_| Ok(parsers::tap::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_immutable_js",
        about: "Jest or its JSON, by the instance.",
        open: |context| parsers::jest::immutable_js(context),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_calypso",
        about: "Jest, names behind those of their suites.",
        open: |_| Ok(Reader::Whole(parsers::jest::calypso)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_carbon",
        about: "Jest's files, `PASS` and `FAIL`.",
        open: |_| Ok(parsers::jest::files()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_react_pdf",
        about: "Jest's files, `PASS` and `FAIL`.",
        open: |_| Ok(parsers::jest::files()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_prettier",
        about: "Jest's files, `PASS` and `FAIL`.",
        open: |_| Ok(parsers::jest::files()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_scratch_gui",
        about: "Jest's files, `PASS` and `FAIL`.",
        open: |_| Ok(parsers::jest::files()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_emotion",
        about: "Jest's files; passes hold.",
        open: |_| Ok(Reader::Whole(parsers::jest::emotion)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_grommet",
        about: "Jest's files without their seconds; passes hold.",
        open: |_| Ok(Reader::Whole(parsers::jest::grommet)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_chart_js",
        about: "Karma's failures.",
        open: |_| Ok(Reader::Whole(parsers::karma::chart_js)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_bpmn_js",
        about: "Karma's failures.",
        open: |_| Ok(Reader::Whole(parsers::karma::bpmn_js)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_openlayers",
        about: "Failures of Karma, Mocha and renderings.",
        open: |_| Ok(Reader::Whole(parsers::karma::openlayers)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_marked",
        about: "Jasmine's failures.",
        open: |_| Ok(parsers::mocha::marked()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_p5js",
        about: "Mocha's failures among JSON and markup.",
        open: |_| Ok(Reader::Whole(parsers::p5js::swe_bench)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_eslint",
        about: "Mocha's failures with `--reporter min`.",
        open: |_| Ok(Reader::Whole(parsers::mocha::eslint)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_highlightjs",
        about: "Mocha's tests below one heading.",
        open: |_| Ok(parsers::mocha::highlightjs()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_prismjs",
        about: "Mocha's JSON.",
        open: |_| Ok(Reader::Whole(parsers::mocha::prismjs)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_lighthouse",
        about: "Mocha, Jest's files or Mocha's JSON, by the version.",
        open: |context| parsers::indented::lighthouse(context),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_next",
        about: "Karma, or Cypress, by the version.",
        open: |context| Ok(parsers::indented::next(context)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_cypress",
        about: "Mocha's JSON, several runs.",
        open: |_| Ok(Reader::Whole(parsers::indented::cypress)),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_plotly_js",
        about: "Suites behind dashes, tests behind stars.",
        open: |_| Ok(parsers::indented::plotly_js()),
    },
    LogParser {
        origin: Origin::SweBench,
        name: "parse_log_quarto_cli",
        about: "Deno's tests of quarto.",
        open: |_| Ok(parsers::quarto::swe_bench()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_pytest",
        about: "pytest's summary; counts of skipped tests are tests.",
        open: |_| Ok(parsers::pytest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_astroid",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_flask",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_marshmallow",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_pvlib",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_pyvista",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_sqlfluff",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_xarray",
        about: "As `parse_log_pytest`.",
        open: |_| Ok(parsers::pytest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_pytest_options",
        about: "As in 5, with counts of skipped tests.",
        open: |_| Ok(parsers::pytest::options_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_pydicom",
        about: "As `parse_log_pytest_options`.",
        open: |_| Ok(parsers::pytest::options_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_requests",
        about: "As `parse_log_pytest_options`.",
        open: |_| Ok(parsers::pytest::options_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_pylint",
        about: "As `parse_log_pytest_options`.",
        open: |_| Ok(parsers::pytest::options_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_pytest_v2",
        about: "As in 5; the name is one word.",
        open: |_| Ok(parsers::pytest::v2_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_astropy",
        about: "As `parse_log_pytest_v2`.",
        open: |_| Ok(parsers::pytest::v2_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_scikit",
        about: "As `parse_log_pytest_v2`.",
        open: |_| Ok(parsers::pytest::v2_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_sphinx",
        about: "As `parse_log_pytest_v2`.",
        open: |_| Ok(parsers::pytest::v2_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_matplotlib",
        about: "As in 5, with counts of skipped tests.",
        open: |_| Ok(parsers::pytest::matplotlib_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_seaborn",
        about: "As in 5; a word that stands alone is an error.",
        open: |_| Ok(parsers::seaborn::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_jest",
        about: "As in 5; names keep the blanks before them.",
        open: |_| Ok(parsers::jest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_immutable_js",
        about: "Jest or its JSON, by the instance.",
        open: |context| parsers::jest::immutable_js_4(context),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_maven",
        about: "Maven; a build is that of the last command.",
        open: |_| Ok(parsers::maven::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweBench4,
        name: "parse_log_gradle_custom",
        about: "Gradle that prints every test on one line.",
        open: |_| Ok(parsers::gradle::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_pytest",
        about: "As SWE-bench's up to 4, without expected failures.",
        open: |_| Ok(parsers::pytest::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_pytest_options",
        about: "As SWE-bench's up to 4, without expected failures.",
        open: |_| Ok(parsers::pytest::options_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_pytest_v2",
        about: "As SWE-bench's up to 4, without expected failures; a word that stands alone is an error.",
        open: |_| Ok(parsers::pytest::v2_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_pytest_nebo",
        about: "pytest with workers, percentages and seconds.",
        open: |_| Ok(parsers::pytest::nebo()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_sympy",
        about: "sympy's own runner, without what it says of files.",
        open: |_| Ok(parsers::sympy::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_phpunit",
        about: "PHPUnit with `--testdox`, without times.",
        open: |_| Ok(parsers::php::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_react_pdf",
        about: "Jest's files, `PASS` and `FAIL`, without the time at the end of a line.",
        open: |_| Ok(parsers::jest::files_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_php_v1",
        about: "Pest.",
        open: |_| Ok(parsers::php::v1()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_gradle_custom",
        about: "Gradle that prints every test, with seconds.",
        open: |_| Ok(parsers::gradle::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_gradlew_v1",
        about: "Gradle's reports in XML, `<name> (<class>)`.",
        open: |_| Ok(Reader::Whole(parsers::xml::gradlew)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_combined_test_reports",
        about: "JUnit's reports in XML, `<class>::<name>`.",
        open: |_| Ok(Reader::Whole(parsers::xml::combined_reports)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_junit",
        about: "Elements `testcase` among anything else.",
        open: |_| Ok(Reader::Whole(parsers::xml::junit)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_sbt",
        about: "Elements `testcase` among anything else.",
        open: |_| Ok(Reader::Whole(parsers::xml::junit)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_logs_r_junit",
        about: "testthat's report in XML.",
        open: |_| Ok(Reader::Whole(parsers::xml::r_junit)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_r_junit",
        about: "testthat's report in XML.",
        open: |_| Ok(Reader::Whole(parsers::xml::r_junit)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_logs_kotlin_junit",
        about: "Surefire's classes.",
        open: |_| Ok(parsers::xml::kotlin_junit()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_kotlin_junit",
        about: "Surefire's classes.",
        open: |_| Ok(parsers::xml::kotlin_junit()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_java_mvn",
        about: "Surefire's classes and methods, reports in XML, or a build per test.",
        open: |_| Ok(Reader::Whole(parsers::xml::java_mvn)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_java_mvn",
        about: "Surefire's classes and methods, reports in XML, or a build per test.",
        open: |_| Ok(Reader::Whole(parsers::xml::java_mvn)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_java_mvn_v2",
        about: "Maven's modules.",
        open: |_| Ok(parsers::xml::java_mvn_v2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_java_mvn_v2",
        about: "Maven's modules.",
        open: |_| Ok(parsers::xml::java_mvn_v2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_elixir",
        about: "ExUnit with `--trace`.",
        open: |_| Ok(parsers::elixir::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_ruby_v1",
        about: "`rake test` with suites.",
        open: |_| Ok(parsers::ruby::v1()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_ruby_v2",
        about: "minitest, verbose, with classes.",
        open: |_| Ok(parsers::ruby::v2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_cpp",
        about: "pytest of C extensions; names without their files.",
        open: |_| Ok(parsers::native::cpp()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_cpp_v2",
        about: "`Test <name>  passed`.",
        open: |_| Ok(parsers::native::cpp_v2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_cpp_v3",
        about: "`[1/9] <name>... OK`, and Botan's groups.",
        open: |_| Ok(parsers::native::cpp_v3()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_cpp_v4",
        about: "CTest.",
        open: |_| Ok(parsers::native::cpp_v4()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_lue_nvim",
        about: "plenary.nvim.",
        open: |_| Ok(parsers::lua::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_lua_nvim",
        about: "plenary.nvim.",
        open: |_| Ok(parsers::lua::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_lua_nvim",
        about: "plenary.nvim.",
        open: |_| Ok(parsers::lua::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_haskell",
        about: "Tasty, Hspec and HUnit, line by line.",
        open: |_| Ok(parsers::haskell::v1()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_haskell_v2",
        about: "Hspec's tree.",
        open: |_| Ok(Reader::Whole(parsers::haskell::v2)),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_js",
        about: "Mocha, failures by their headings.",
        open: |_| Ok(parsers::jest::js()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_js_2",
        about: "Mocha, failures by their numbers.",
        open: |_| Ok(parsers::jest::js_2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_js_3",
        about: "Nested TAP.",
        open: |_| Ok(parsers::tap::nested()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_js_4",
        about: "Marks of many runners.",
        open: |_| Ok(parsers::jest::js_4()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_npx",
        about: "Marks of passes, numbers of failures.",
        open: |_| Ok(parsers::jest::npx()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_julia",
        about: "Julia's table of results.",
        open: |_| Ok(parsers::julia::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_r",
        about: "testthat.",
        open: |_| Ok(parsers::r::v1()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_r_v2",
        about: "`R CMD check`.",
        open: |_| Ok(parsers::r::v2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_lein",
        about: "`lein test`, namespaces.",
        open: |_| Ok(parsers::clojure::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_dart",
        about: "`dart test`, JSON reporter.",
        open: |_| Ok(parsers::dart::v1()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_dart_v2",
        about: "`dart test` of several packages, compact reporter.",
        open: |_| Ok(parsers::dart::v2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_dart_v3",
        about: "`flutter test`.",
        open: |_| Ok(parsers::dart::v3()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_scala",
        about: "ScalaTest.",
        open: |_| Ok(parsers::scala::v1()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_scala_v2",
        about: "munit.",
        open: |_| Ok(parsers::scala::v2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_scala_v3",
        about: "ScalaTest, names behind those of their suites.",
        open: |_| Ok(parsers::scala::v3()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_ocaml",
        about: "Alcotest and QCheck.",
        open: |_| Ok(parsers::ocaml::v1()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_ocaml_v2",
        about: "dune's binaries.",
        open: |_| Ok(parsers::ocaml::v2()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_ocaml_v3",
        about: "Words in brackets.",
        open: |_| Ok(parsers::ocaml::v3()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_ocaml_v4",
        about: "ocamlbuild.",
        open: |_| Ok(parsers::ocaml::v4()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_ocaml_v5",
        about: "ocamlbuild.",
        open: |_| Ok(parsers::ocaml::v4()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_swift",
        about: "XCTest.",
        open: |_| Ok(parsers::swift::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweRebench,
        name: "parse_log_csharp",
        about: "xUnit.net.",
        open: |_| Ok(parsers::dotnet::swe_rebench()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_pytest",
        about: "pytest's lines of progress.",
        open: |_| Ok(parsers::pytest::swe_smith()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_paramiko",
        about: "pytest's summary.",
        open: |_| Ok(parsers::pytest::swe_smith_paramiko()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_autograd",
        about: "pytest under xdist.",
        open: |_| Ok(parsers::pytest::swe_smith_autograd()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_mypy",
        about: "mypy's tests.",
        open: |_| Ok(parsers::pytest::swe_smith_mypy()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_python_slugify",
        about: "unittest.",
        open: |_| Ok(parsers::django::swe_smith_python_slugify()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_tornado",
        about: "tornado's unittest.",
        open: |_| Ok(parsers::django::swe_smith_tornado()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_gotest",
        about: "`go test -v`, with packages that fail.",
        open: |_| Ok(parsers::go::swe_smith()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_cargo",
        about: "`cargo test`, with documentation tests.",
        open: |_| Ok(parsers::cargo::swe_smith()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_csharp",
        about: "`dotnet test`.",
        open: |_| Ok(parsers::dotnet::swe_smith()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_phpunit",
        about: "PHPUnit with `--testdox`, without suites.",
        open: |_| Ok(parsers::php::swe_smith()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_jq",
        about: "Automake's `PASS:` and `FAIL:`.",
        open: |_| Ok(parsers::native::jq()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_redis",
        about: "`runtest` of redis and valkey.",
        open: |_| Ok(parsers::native::redis()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_ctest",
        about: "CTest.",
        open: |_| Ok(Reader::Whole(parsers::native::ctest)),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_gtest",
        about: "GoogleTest.",
        open: |_| Ok(Reader::Whole(parsers::native::gtest)),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_catch2",
        about: "Catch2, XML or text.",
        open: |_| Ok(Reader::Whole(parsers::native::catch2)),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_boost_test",
        about: "Boost.Test.",
        open: |_| Ok(Reader::Whole(parsers::native::boost_test)),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_qtest",
        about: "Qt Test.",
        open: |_| Ok(parsers::native::qtest()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_maven_surefire",
        about: "Surefire with times.",
        open: |_| Ok(parsers::maven::surefire()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_gradle_junit_xml",
        about: "Gradle's reports in XML.",
        open: |_| Ok(Reader::Whole(parsers::xml::gradle_junit)),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_jest",
        about: "Jest with `--verbose`.",
        open: |_| Ok(parsers::jest::swe_bench_4()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_mocha",
        about: "Mocha.",
        open: |_| Ok(parsers::mocha::swe_smith()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_vitest",
        about: "vitest's files.",
        open: |_| Ok(parsers::jest::vitest_files()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_karma",
        about: "Karma's counts.",
        open: |_| Ok(parsers::karma::swe_smith()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_jasmine",
        about: "Jasmine's counts.",
        open: |_| Ok(parsers::mocha::jasmine()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_react_pdf",
        about: "Marks with milliseconds, as react-pdf's vitest has them.",
        open: |_| Ok(parsers::jest::swe_smith_react_pdf()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_marked",
        about: "node's own runner, as marked has it.",
        open: |_| Ok(parsers::mocha::swe_smith_marked()),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_drizzle_orm",
        about: "Turborepo's tasks, as drizzle-orm has them.",
        open: |_| Ok(Reader::Whole(parsers::jest::swe_smith_drizzle_orm)),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_typescript",
        about: "Mocha, or its counts, as TypeScript has it.",
        open: |_| Ok(Reader::Whole(parsers::mocha::swe_smith_typescript)),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_cppunit",
        about: "CppUnit's counts, as aria2 has them.",
        open: |_| Ok(Reader::Whole(parsers::native::cppunit)),
    },
    LogParser {
        origin: Origin::SweSmith,
        name: "parse_log_airsim",
        about: "GoogleTest's words anywhere, as AirSim has them.",
        open: |_| Ok(Reader::Whole(parsers::native::airsim)),
    },
    LogParser {
        origin: Origin::R2eGym,
        name: "parse_log_pytest",
        about: "pytest's short summary; names are what stands behind files.",
        open: |_| Ok(Reader::Whole(parsers::pytest::r2e_gym)),
    },
    LogParser {
        origin: Origin::TerminalBench,
        name: "pytest",
        about: "pytest's short summary.",
        open: |_| Ok(Reader::Whole(parsers::terminal_bench::pytest)),
    },
    LogParser {
        origin: Origin::TerminalBench,
        name: "swebench",
        about: "What SWE-bench tasks print at last.",
        open: |_| Ok(Reader::Whole(parsers::terminal_bench::swebench)),
    },
    LogParser {
        origin: Origin::TerminalBench,
        name: "sweperf",
        about: "What SWE-Perf tasks print at last.",
        open: |_| Ok(Reader::Whole(parsers::terminal_bench::sweperf)),
    },
    LogParser {
        origin: Origin::TerminalBench,
        name: "mlebench",
        about: "What MLE-bench tasks print at last.",
        open: |_| Ok(Reader::Whole(parsers::terminal_bench::mlebench)),
    },
    LogParser {
        origin: Origin::TerminalBench,
        name: "swelancer",
        about: "What SWE-Lancer tasks print at last.",
        open: |_| Ok(Reader::Whole(parsers::terminal_bench::swelancer)),
    },
];
