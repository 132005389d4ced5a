//! The studies that come with the program, and files with mistakes.

use serde_json::Value;

use super::*;

fn plan(text: &str, form: Form) -> Result<Plan, Vec<Mistake>> {
    let surroundings = Surroundings { beside: None, cache: Path::new("/cache") };
    Plan::new(&file::read(text).map_err(|mistake| vec![mistake])?, form, &surroundings)
}

/// All that is wrong in one of the forms, a line each.
fn mistakes(text: &str, form: Form) -> String {
    let source = Source { name: "my.toml".to_owned(), text: text.to_owned() };
    let told = |mistakes: Vec<Mistake>| mistakes.iter().map(|m| m.told(&source)).collect::<Vec<_>>().join("\n");
    plan(text, form).map(|_| String::new()).unwrap_or_else(told)
}

#[test]
fn the_built_in_studies_have_no_mistakes_and_their_quick_forms_are_smaller() {
    assert_eq!(built_in::names().count(), 4);
    for name in built_in::names() {
        let text = built_in::study(name).unwrap();
        assert_eq!([mistakes(text, Form::Full), mistakes(text, Form::Quick)], ["", ""], "{name}");
        let [full, quick] = [Form::Full, Form::Quick].map(|form| plan(text, form).unwrap());
        assert!(quick.runs() * 3 < full.runs() * 2, "{name}: {} and {}", full.runs(), quick.runs());
        assert!(!quick.expectations.is_empty(), "{name}");
    }
}

#[test]
fn only_inputs_that_a_form_needs_are_made() {
    let inputs = |form| {
        let plan = plan(built_in::study("home-server").unwrap(), form).unwrap();
        plan.inputs.into_iter().map(|input| input.name).collect::<Vec<_>>()
    };
    assert_eq!([inputs(Form::Full), inputs(Form::Quick)], [["linux"], ["small"]]);
}

const SCHEMA: &str = include_str!("../../studies/study.schema.json");

fn as_json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

#[test]
fn the_schema_takes_the_built_in_studies() {
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    for name in built_in::names() {
        let study = as_json(built_in::study(name).unwrap());
        let errors: Vec<String> =
            schema.iter_errors(&study).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

/// A study with nothing wrong in it.
const RIGHT: &str = r#"title = "right"
[values]
files = "10"
[quick.values]
files = "1"
[[place]]
name = "ext4"
at = "ext4:size=64M"
[[place]]
name = "here"
at = "."
[[part]]
name = "walk"
places = ["ext4"]
data = "tree:dirs=10,files={files}"
caches = ["warm"]
runs = 2
timeout = "1min"
commands = [{ name = "find", run = "find ." }]
[[expect]]
what = "runs[command=find].wall_ns"
min = 1
"#;

#[test]
fn huge_numbers_of_runs_are_counted() {
    let text = RIGHT.replace("runs = 2", "runs = 4294967295\ntraced = 4294967295\nwarmup = 4294967295");
    assert_eq!(plan(&text, Form::Full).unwrap().runs(), 3 * u64::from(u32::MAX));
}

#[test]
fn with_until_there_are_as_many_pairs_as_a_verdict_takes() {
    let runs = |more: &str| {
        let places = ["ext4", "xfs", "tmpfs"].map(|fs| format!("[[place]]\nname = \"{fs}\"\nat = \"{fs}\"\n")).join("");
        let text = format!(
            "title = \"t\"\nabout = \"a\"\n{places}[[part]]\nname = \"p\"\ntitle = \"p\"\nplaces = [\"ext4\", \"xfs\", \"tmpfs\"]\n\
             commands = [{{ name = \"a\", run = \"true\" }}, {{ name = \"b\", run = \"true\" }}]\ncaches = [\"warm\"]\nruns = 6\n{more}"
        );
        plan(&text, Form::Full).unwrap_or_else(|wrong| panic!("{wrong:?}")).parts[0].repetitions.untraced
    };
    // Seven comparisons take nine pairs.
    assert_eq!([runs(""), runs("until = \"5%\"\n")], [6, 9]);
}

/// What is put in for what, and what is then told. The schema must find what it can: whether it does stands beside.
#[test]
fn mistakes_are_told_with_line_and_column() {
    assert_eq!(mistakes(RIGHT, Form::Full), "");
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    assert!(schema.is_valid(&as_json(RIGHT)));
    let mut told = String::new();
    for (from, to, schema_sees) in [
        ("title = \"right\"", "titel = \"right\"", true),
        ("title = \"right\"", "title = 7", true),
        ("runs = 2", "runs = \"many\"", true),
        ("runs = 2", "runs = 0", true),
        ("runs = 2", "runs = -2", true),
        ("runs = 2", "runs = 2\nspeed = 9", true),
        ("runs = 2", "runs = 99999999999", true),
        ("runs = 2", "runs = 2\nuntil = \"2%\"", false),
        ("runs = 2", "runs = ", true),
        ("caches = [\"warm\"]", "caches = [\"tepid\"]", true),
        ("caches = [\"warm\"]", "caches = [\"warm\", \"warm\"]", true),
        ("timeout = \"1min\"", "timeout = \"1 parsec\"", true),
        ("timeout = \"1min\"", "timeout = \"9999999h\"", false),
        ("at = \"ext4:size=64M\"", "at = \"ext4:size=lots\"", false),
        ("at = \"ext4:size=64M\"", "at = \"overlay\"\nover = \"ext4\"", false),
        ("at = \"ext4:size=64M\"", "at = \"overlay\"\nover = \"xfs\"", false),
        ("at = \".\"", "at = \"ext4\"\nover = \"ext4\"", false),
        ("name = \"here\"", "name = \"ext4\"", false),
        ("places = [\"ext4\"]", "places = [\"xfs\"]", false),
        ("places = [\"ext4\"]", "places = []", true),
        ("places = [\"ext4\"]", "places = [\"ext4\", \"ext4\"]", true),
        ("places = [\"ext4\"]", "places = [\"here\"]", false),
        ("tree:dirs=10,files={files}", "tree:dirs=10,leaves=3", false),
        ("tree:dirs=10,files={files}", "tree:dirs=10,files={flies}", false),
        ("[quick.values]\nfiles", "[quick.values]\nflies", false),
        ("run = \"find .\"", "run = \"\"", false),
        ("{ name = \"find\", run = \"find .\" }", "", true),
        ("name = \"find\"", "name = \"find, fast\"", true),
        ("command=find", "command=fnid", false),
        ("wall_ns", "wall_s", false),
        ("min = 1", "min = 1\nmax = 0", false),
        ("min = 1", "", true),
        ("[[part]]", "[[input]]\nname = \"a\"\nscript = \"no/such.sh\"\n[[part]]", false),
        ("[[part]]", "[[input]]\nname = \"A\"\nscript = \"inputs/prm.sh\"\n[[part]]", true),
        ("[[part]]", "[[section]]", true),
    ] {
        let text = RIGHT.replacen(from, to, 1);
        let found = [Form::Full, Form::Quick].map(|form| mistakes(&text, form)).into_iter().find(|m| !m.is_empty());
        let found = found.unwrap_or_else(|| panic!("nothing is wrong with {to:?}"));
        if let Ok(table) = toml::from_str::<toml::Table>(&text) {
            let json = serde_json::to_value(table).unwrap();
            assert_eq!(schema.is_valid(&json), !schema_sees, "the schema and {to:?}");
        }
        told.push_str(&format!("{}\n", to.replace('\n', " ⏎ ")));
        found.lines().for_each(|line| told.push_str(&format!("    {line}\n")));
    }
    insta::assert_snapshot!(told);
}
