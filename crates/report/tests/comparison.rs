//! Golden comparisons: compares the output of every format with the files of earlier output.
//!
//! The comparisons are the `.json` files themselves. After an intended change, run `FATHOM_BLESS=1 cargo test -p fathom-io-report` and check
//! `git diff`.

mod style_filter;

use model::comparison::{Comparison, Comparisons, Other, side_name};
use report::{Detail, Style, TEXT, formats_that_write};
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
        for (format, _) in formats_that_write::<Comparison>() {
            let now =
                style_filter::without_style(String::from_utf8(format.bytes(&comparison, Style::default())?)?);
            let kept = file.with_extension(format.name);
            if std::env::var_os("FATHOM_BLESS").is_some() {
                std::fs::write(&kept, &now)?;
            }
            assert_eq!(now, std::fs::read_to_string(&kept)?, "{} changed", kept.display());
        }
    }
    Ok(())
}

/// Returns a comparison of several sides: each golden comparison is a side.
fn several() -> Result<Comparisons, Box<dyn std::error::Error>> {
    let mut others = Vec::new();
    for (at, name) in ["cannot_tell", "slower", "incomparable"].into_iter().enumerate() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/comparison/{name}.json"));
        others.push(Other {
            name: side_name(at + 1),
            comparison: serde_json::from_slice(&std::fs::read(file)?)?,
        });
    }
    let first = &others[0].comparison;
    Ok(Comparisons { fathom: first.fathom.clone(), gate: first.gate.clone(), others })
}

#[test]
fn every_format_renders_several_sides_as_before() -> Tried {
    let several = several()?;
    for (format, _) in formats_that_write::<Comparisons>() {
        for (width, name) in [(80, "several"), (40, "several.narrow"), (120, "several.wide")] {
            if width != 80 && format.name != TEXT.name {
                continue;
            }
            let now = String::from_utf8(format.bytes(&several, Style { width, ..Style::default() })?)?;
            let now = style_filter::without_style(now);
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/several");
            let kept = dir.join(format!("{name}.{}", format.extension));
            if std::env::var_os("FATHOM_BLESS").is_some() {
                std::fs::create_dir_all(&dir)?;
                std::fs::write(&kept, &now)?;
            }
            assert_eq!(now, std::fs::read_to_string(&kept)?, "{} changed", kept.display());
        }
    }
    let json = serde_json::to_string(&several)?;
    assert_eq!(serde_json::from_str::<Comparisons>(&json)?, several);
    Ok(())
}

#[test]
fn brief_prints_only_the_table_and_verbose_every_answer() -> Tried {
    let several = several()?;
    let one = &several.others[1].comparison;
    for name in ["text", "markdown"] {
        let format =
            formats_that_write::<Comparison>().find(|(f, _)| f.name == name).ok_or("no such format")?.0;
        let render = |detail| -> Result<[String; 2], Box<dyn std::error::Error>> {
            let style = Style { detail, ..Style::default() };
            Ok([
                String::from_utf8(format.bytes(one, style)?)?,
                String::from_utf8(format.bytes(&several, style)?)?,
            ])
        };
        for brief in render(Detail::Brief)? {
            assert!(
                brief.contains("SLOWER") && !brief.contains("E14") && !brief.contains("bench"),
                "{brief}"
            );
        }
        for (usual, all) in render(Detail::Usual)?.iter().zip(render(Detail::All)?) {
            assert!(!usual.contains("NOISE_FLOOR") && !usual.contains("NOISE\\_FLOOR"), "{usual}");
            assert!(usual.contains("1 note, 1 not checked") || usual.contains("1 not checked"), "{usual}");
            assert!(all.replace('\\', "").contains("E15 NOISE_FLOOR"), "{all}");
        }
    }
    Ok(())
}

#[test]
fn a_terminal_adds_only_colour() -> Tried {
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
