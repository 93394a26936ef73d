/// Which of SWE-bench's parsers reads a repository's logs, for rows that do not say so: those up to version 4.
const PARSERS: &[(&str, &[&str])] = &[
    (
        "parse_log_pytest",
        &[
            "marshmallow-code/marshmallow",
            "pallets/flask",
            "pvlib/pvlib-python",
            "pydata/xarray",
            "pylint-dev/astroid",
            "pytest-dev/pytest",
            "pyvista/pyvista",
            "sqlfluff/sqlfluff",
        ],
    ),
    ("parse_log_pytest_options", &["psf/requests", "pydicom/pydicom", "pylint-dev/pylint"]),
    ("parse_log_pytest_v2", &["astropy/astropy", "scikit-learn/scikit-learn", "sphinx-doc/sphinx"]),
    ("parse_log_django", &["django/django"]),
    ("parse_log_matplotlib", &["matplotlib/matplotlib"]),
    ("parse_log_seaborn", &["mwaskom/seaborn"]),
    ("parse_log_sympy", &["sympy/sympy"]),
    (
        "parse_log_cargo",
        &[
            "astral-sh/ruff",
            "burntsushi/ripgrep",
            "nushell/nushell",
            "sharkdp/bat",
            "tokio-rs/axum",
            "tokio-rs/tokio",
            "uutils/coreutils",
        ],
    ),
    (
        "parse_log_gotest",
        &[
            "caddyserver/caddy",
            "gin-gonic/gin",
            "gohugoio/hugo",
            "hashicorp/terraform",
            "prometheus/prometheus",
        ],
    ),
    ("parse_log_redis", &["redis/redis", "valkey-io/valkey"]),
    ("parse_log_jq", &["jqlang/jq"]),
    ("parse_log_doctest", &["nlohmann/json"]),
    ("parse_log_micropython_test", &["micropython/micropython"]),
    ("parse_log_googletest", &["fmtlib/fmt"]),
    ("parse_log_maven", &["apache/druid", "google/gson", "javaparser/javaparser"]),
    ("parse_log_ant", &["projectlombok/lombok"]),
    ("parse_log_gradle_custom", &["apache/lucene", "reactivex/rxjava"]),
    (
        "parse_log_phpunit",
        &[
            "briannesbitt/carbon",
            "laravel/framework",
            "php-cs-fixer/php-cs-fixer",
            "phpoffice/phpspreadsheet",
        ],
    ),
    ("parse_log_jekyll", &["jekyll/jekyll"]),
    ("parse_log_ruby_unit", &["faker-ruby/faker", "fluent/fluentd"]),
    (
        "parse_log_rspec_transformed_json",
        &["fastlane/fastlane", "jordansissel/fpm", "rubocop/rubocop"],
    ),
    ("parse_log_calypso", &["automattic/wp-calypso"]),
    ("parse_log_chart_js", &["chartjs/chart.js"]),
    ("parse_log_marked", &["markedjs/marked"]),
    ("parse_log_p5js", &["processing/p5.js"]),
    ("parse_log_react_pdf", &["diegomura/react-pdf"]),
    ("parse_log_jest", &["babel/babel", "facebook/docusaurus"]),
    ("parse_log_vitest", &["vuejs/core"]),
    ("parse_log_immutable_js", &["immutable-js/immutable-js"]),
    ("parse_log_tap", &["axios/axios", "mrdoob/three.js"]),
    ("parse_log_karma", &["preactjs/preact"]),
    ("parse_log_next", &["alibaba-fusion/next"]),
    ("parse_log_bpmn_js", &["bpmn-io/bpmn-js"]),
    (
        "parse_log_carbon",
        &["carbon-design-system/carbon", "prettier/prettier", "scratchfoundation/scratch-gui"],
    ),
    ("parse_log_cypress", &["cypress-io/cypress"]),
    ("parse_log_emotion", &["emotion-js/emotion"]),
    ("parse_log_eslint", &["eslint/eslint"]),
    ("parse_log_lighthouse", &["googlechrome/lighthouse"]),
    ("parse_log_grommet", &["grommet/grommet"]),
    ("parse_log_highlightjs", &["highlightjs/highlight.js"]),
    ("parse_log_openlayers", &["openlayers/openlayers"]),
    ("parse_plotly_js", &["plotly/plotly.js"]),
    ("parse_log_prismjs", &["prismjs/prism"]),
    ("parse_log_quarto_cli", &["quarto-dev/quarto-cli"]),
];

/// The name of SWE-bench's parser for `owner/name`, in either case; `None` for repositories that it does not have.
pub fn log_parser_of_repository(repository: &str) -> Option<&'static str> {
    let repository = repository.to_ascii_lowercase();
    let row = PARSERS.iter().find(|(_, all)| all.contains(&repository.as_str()))?;
    Some(row.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Origin, find_log_parser};

    #[test]
    fn every_repository_has_a_parser_that_is_known() {
        for (parser, repositories) in PARSERS {
            find_log_parser(Origin::SweBench4, parser).unwrap();
            for repository in *repositories {
                assert_eq!(log_parser_of_repository(repository), Some(*parser), "{repository}");
            }
        }
        assert_eq!(log_parser_of_repository("PrismJS/prism"), Some("parse_log_prismjs"));
        assert_eq!(log_parser_of_repository("rust-lang/rust"), None);
    }
}
