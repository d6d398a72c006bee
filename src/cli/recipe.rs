//! `fathom recipe`: its flags.

use crate::cli::shared_flags::{Measuring, ReportArgs, one_named};
use crate::cli::{run, shared_flags};
use crate::failure::Failure;
use crate::recipes::{RECIPES, Recipe};
use crate::request::{JobSource, Request, Work};
use crate::show::Showing;
use crate::stdout;
use clap::Arg;
use model::verdict::Condition;
use std::path::PathBuf;

/// Run the I/O pattern of an application, and check it against the limit that the source of the pattern names.
///
/// Without NAME it lists all recipes. A recipe is a job file with its source. If the source names a
/// limit, the report begins with PASS, FAIL, INVALID or INCONCLUSIVE: PASS if the number is within
/// the limit with 95 % confidence. --explain prints the job file, which you can copy and change.
#[derive(clap::Args, Debug)]
#[command(mut_args(require_name))]
pub struct Args {
    /// Name of the recipe [default: list all]
    #[arg(value_parser = one_named(RECIPES, |r| (r.name, r.about)))]
    name: Option<&'static Recipe>,
    /// Directory, file or block device [default: the current directory]
    #[arg(value_parser = shared_flags::target_parser())]
    target: Option<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    report: ReportArgs,
}

/// Makes a flag require the name of a recipe, because the list of recipes uses no flags.
fn require_name(arg: Arg) -> Arg {
    if arg.get_id() == "name" { arg } else { arg.requires("name") }
}

impl Args {
    /// Returns the request; `None` after printing the list.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn request(self) -> Result<Option<(Request, Showing)>, Failure> {
        let Some(recipe) = self.name else {
            stdout::print_text(&list_recipes())?;
            return Ok(None);
        };
        let given = self.measuring.keys.given.clone();
        let mut request = self.measuring.request(Work::Job, self.target);
        let source = JobSource::Recipe(recipe);
        let job = dialect::job::parse(&source.name(), recipe.text, crate::plan::find_problems);
        run::use_job(&mut request, &given, source, job.map_err(run::failure_with_location)?)?;
        Ok(Some((request, self.report.showing()?)))
    }
}

/// Lists each recipe with its description and conditions.
fn list_recipes() -> String {
    let width = RECIPES.iter().map(|r| r.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for recipe in RECIPES {
        out += &format!("{:width$}  {}\n", recipe.name, recipe.about);
        let conditions = list_conditions(recipe);
        if !conditions.is_empty() {
            out += &format!("{:width$}  fails if {}\n", "", conditions.join(" or "));
        }
    }
    out
}

/// Returns the conditions in the form of `--fail-if`.
fn list_conditions(recipe: &Recipe) -> Vec<String> {
    let job = dialect::job::parse(recipe.name, recipe.text, crate::plan::find_problems).ok();
    let given = job.and_then(|job| job.fail_if).unwrap_or_default();
    given.iter().map(Condition::to_flag).collect()
}

#[test]
fn every_recipe_is_a_job_with_a_source() {
    for recipe in RECIPES {
        let job = dialect::job::parse(recipe.name, recipe.text, crate::plan::find_problems);
        let job = job.unwrap_or_else(|trouble| panic!("{trouble}"));
        let problems = job.check();
        assert!(problems.is_empty(), "{}: {problems:?}", recipe.name);
        assert!(job.name.is_some(), "{} needs a name for its results", recipe.name);
        assert!(recipe.text.contains("\n# Source: http"), "{}", recipe.name);
        // `fathom recipe` has one target for all streams, so no stream may name its own.
        assert!(job.streams().all(|s| s.target.is_empty()), "{}", recipe.name);
    }
    let mut names: Vec<&str> = RECIPES.iter().map(|r| r.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RECIPES.len(), "names are unique");
}

#[test]
fn the_list_fits_a_terminal() {
    assert!(list_recipes().lines().all(|line| line.chars().count() <= 80), "{}", list_recipes());
    assert!(list_recipes().contains("fails if sync.p99>10ms"), "{}", list_recipes());
}
