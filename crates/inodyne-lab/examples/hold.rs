//! Makes places and holds them until its standard input ends: to look at one by hand, and to be killed by tests.
//!
//! `hold PLACE... [-- DATA]` prints `made` and the path for each place, fills it and empties its caches where there is
//! data, then prints `ready`.

use std::{env, io, process::ExitCode};

use inodyne_lab::{DataSpec, Lab, LabError, MountedPlace, Owner, PlaceSpec, make_cold};

fn main() -> ExitCode {
    let places = match make() {
        Ok(places) => places,
        Err(error) => {
            eprintln!("hold: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("ready");
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    drop(places);
    ExitCode::SUCCESS
}

fn make() -> Result<Vec<MountedPlace>, LabError> {
    let mut arguments = env::args().skip(1);
    let specs: Vec<PlaceSpec> = arguments
        .by_ref()
        .take_while(|argument| argument != "--")
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let data: Option<DataSpec> = arguments.next().map(|text| text.parse()).transpose()?;
    let lab = Lab::new();
    let mut places = Vec::new();
    for spec in &specs {
        let mut place = lab.make(spec, Owner::ROOT)?;
        println!("made {spec} {}", place.path().display());
        for note in place.notes() {
            println!("note: {note}");
        }
        if let Some(data) = &data {
            let filled = place.fill(data)?;
            println!("filled with {} files in {} directories", filled.files, filled.directories);
            if !place.is_in_memory() {
                make_cold(&mut place)?;
            }
        }
        places.push(place);
    }
    Ok(places)
}
