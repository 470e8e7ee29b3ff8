//! Programs of the binary interface of MPI 5. The compiler wrapper `mpicc_abi` of MPICH 5 and its `mpiexec` are looked for in the directory `CLC_TEST_MPI_5`
//! (`python3 -m venv DIR; DIR/bin/pip install mpich` makes `DIR/bin`); without it, the test says so and does nothing.
#![allow(clippy::print_stdout)] // that it has been skipped

use super::{App, Library, records_everything};

#[test]
fn programs_of_the_interface_of_mpi_5_are_recorded() {
    let Ok(directory) = std::env::var("CLC_TEST_MPI_5") else {
        println!("skipped: CLC_TEST_MPI_5 does not say where mpicc_abi is");
        return;
    };
    // They live as long as the tests.
    let tool = |name: &str| -> &'static str { Box::leak(format!("{directory}/{name}").into_boxed_str()) };
    let library =
        Library { compiler: tool("mpicc_abi"), fortran: "", launcher: Box::leak(Box::new([tool("mpiexec")])) };
    let app = App::c(library);
    records_everything(&app, &["10"]);
    let app = App::c(library);
    records_everything(&app, &["1", "threads"]);
}
