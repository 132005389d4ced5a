//! Makes places and holds them until its standard input ends: to look at one by hand, and to be killed by tests.
//!
//! `hold PLACE... [-- DATA]` prints `made` and the path for each place, then `ready`.

use std::{env, io, process::ExitCode};

use inodyne_lab::{DataSpec, Lab, LabError, MountedPlace, Owner, PlaceSpec};

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
    let lab = Lab::enter()?;
    let mut places = Vec::new();
    for spec in &specs {
        let mut place = lab.make(spec, Owner::ROOT)?;
        println!("made {spec} {}", place.path().display());
        if let Some(data) = &data {
            place.fill(data)?;
        }
        places.push(place);
    }
    Ok(places)
}
