//! What `--help`, `--cmdhelp` and `--enghelp` print.
//!
//! For: people who type what they type to fio. Not for: the document of all options (docs/reference/fio.md), which is made from the same tables.

use super::options::How::{Held, NoEffect, Only, Refused};
use super::options::{self, FioOption, OPTIONS, OTHER_ENGINES};
use super::own::OWN;
use super::sections::visible;
use super::streams::{ENGINE_OPTIONS, ENGINES};

/// The page of `--help`.
pub(super) fn page() -> String {
    let mut out = String::from(
        "fathom fio [OPTIONS] [OPTIONS OF JOBS] [JOB FILES]\n\n\
         Carries job files and command lines of fio 3.33 out: one run, fio's output, fio's exit codes, files with fio's names.\n\
         What fathom makes of the numbers is in the key \"fathom\" of JSON, on standard error beside text, and in\n\
         `fathom show last`. fathom called by the name fio is this command.\n\n",
    );
    for option in OWN {
        let Held(about) = option.how else { continue };
        let value = option.value.map_or_else(String::new, |value| format!("={value}"));
        out += &format!("  --{}{value}\n          {about}\n", option.name);
    }
    out + "\nOptions of jobs: --cmdhelp lists them, --cmdhelp=OPTION says what becomes of one, `fathom help reference/fio` prints all.\n"
}

/// What becomes of an option of a job; of all of them where none or `all` is named.
pub(super) fn of_option(name: &str) -> Result<String, String> {
    if name.is_empty() || name == "all" {
        return Ok(lines(OPTIONS.iter()));
    }
    let option = options::find(name).ok_or_else(|| {
        let near = options::nearest(name).map_or("all", |near| near);
        format!("--cmdhelp={}: there is no such option; type --cmdhelp={near}", visible(name))
    })?;
    let alias =
        option.aliases.iter().fold(String::new(), |all, alias| all + &format!("{:>20}: {alias}\n", "alias"));
    Ok(format!("{:>20}: {}\n{alias}", option.name, about(option)))
}

/// The engines; the options of one where it is named.
pub(super) fn of_engine(name: &str) -> Result<String, String> {
    if name.is_empty() {
        let names = ENGINES.iter().map(|(engine, here)| format!("\t{engine:12}{here}\n"));
        return Ok(format!(
            "IO engines, and the engine of fathom that each is:\n{}",
            names.collect::<String>()
        ));
    }
    if ENGINES.iter().any(|(engine, _)| *engine == name) {
        let its = ENGINE_OPTIONS.iter().filter(|(_, engines)| engines.contains(&name));
        let lines = lines(its.filter_map(|(option, _)| options::find(option)));
        return Ok(if lines.is_empty() { format!("{name} has no options of its own here\n") } else { lines });
    }
    let other = OTHER_ENGINES.iter().find(|(engine, ..)| *engine == name);
    let why = other.map_or("fio has no such engine; type --enghelp", |(_, why, _)| why);
    Err(format!("--enghelp={}: {why}", visible(name)))
}

/// A line for each option.
fn lines<'o>(of: impl Iterator<Item = &'o FioOption>) -> String {
    of.fold(String::new(), |all, option| all + &format!("{:24}: {}\n", option.name, about(option)))
}

fn about(option: &FioOption) -> String {
    match option.how {
        Held(what) => what.into(),
        NoEffect(why) => format!("changes nothing: {why}"),
        Only(values, why) => format!("only {}: {why}", values.join(" or ")),
        Refused(why) => format!("refused: {why}"),
    }
}

#[test]
fn every_option_and_every_engine_has_help() {
    for name in OPTIONS.iter().map(|option| option.name) {
        assert!(of_option(name).is_ok_and(|text| text.contains(name)), "{name}");
        assert!(of_option("all").is_ok_and(|text| text.contains(name)), "{name}");
    }
    for (engine, _) in ENGINES {
        assert!(
            of_engine(engine).is_ok() && of_engine("").is_ok_and(|text| text.contains(engine)),
            "{engine}"
        );
    }
    for (option, engines) in ENGINE_OPTIONS {
        assert!(options::find(option).is_some(), "{option}");
        assert!(engines.iter().all(|e| of_engine(e).is_ok_and(|text| text.contains(option))), "{option}");
    }
    assert_eq!(
        of_option("iodepht"),
        Err("--cmdhelp=iodepht: there is no such option; type --cmdhelp=iodepth".into())
    );
    assert!(of_engine("rbd").is_err_and(|why| why.contains("client of its own")));
}
