//! Golden comparisons: every format renders each of them as it was when somebody last looked.
//!
//! For: noticing that a line or a name of the contract changed. Not for: whether a comparison is right.
//! The comparisons are the `.json` files themselves. After a change that is meant, look at
//! `FATHOM_BLESS=1 cargo test -p fathom-io-report` and `git diff`.

use model::comparison::Comparison;
use report::{Style, TEXT, able};
use std::path::{Path, PathBuf};

type Tried = Result<(), Box<dyn std::error::Error>>;

fn golden() -> Result<Vec<PathBuf>, std::io::Error> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/comparison");
    let files: Result<Vec<PathBuf>, _> = std::fs::read_dir(dir)?.map(|e| e.map(|e| e.path())).collect();
    Ok(files?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "json")).collect())
}

#[test]
fn every_format_renders_every_golden_comparison_as_before() -> Tried {
    let files = golden()?;
    assert!(files.len() >= 3, "the golden comparisons are gone");
    for file in files {
        let comparison: Comparison = serde_json::from_slice(&std::fs::read(&file)?)?;
        for (format, _) in able::<Comparison>() {
            let now = String::from_utf8(format.bytes(&comparison, Style::default())?)?;
            let kept = file.with_extension(format.name);
            if std::env::var_os("FATHOM_BLESS").is_some() {
                std::fs::write(&kept, &now)?;
            }
            assert_eq!(now, std::fs::read_to_string(&kept)?, "{} changed", kept.display());
        }
    }
    Ok(())
}

#[test]
fn colour_is_the_only_difference_that_a_terminal_makes() -> Tried {
    for file in golden()? {
        let comparison: Comparison = serde_json::from_slice(&std::fs::read(&file)?)?;
        let text = |colour| -> Result<String, Box<dyn std::error::Error>> {
            Ok(String::from_utf8(TEXT.bytes(&comparison, Style { colour, ..Style::default() })?)?)
        };
        let coloured = text(true)?;
        assert!(coloured.contains("\x1b[1;") && !text(false)?.contains('\x1b'));
        assert!(coloured.contains(comparison.answer.word()));
    }
    Ok(())
}
