//! Compares the JSON schema of a report with its types.
//!
//! After an intended change, run `FATHOM_BLESS=1 cargo test -p fathom-io-report --test schema` and check `git diff`.

use model::report::Report;

#[test]
fn the_schema_matches_the_types() {
    let mut schema = schemars::schema_for!(Report);
    schema.insert("title".into(), "Report of fathom, format 1".into());
    let generated = format!("{:#}\n", schema.to_value());
    if std::env::var_os("FATHOM_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/formats/json/schema.json");
        std::fs::write(path, &generated).expect("the schema is a file of this repository");
    } else {
        assert_eq!(
            report::SCHEMAS[0],
            ("report", generated.as_str()),
            "set FATHOM_BLESS=1, run this again and look at git diff"
        );
    }
}
