//! Sessions of MPI 4, threads that are older than MPI_Init, and which functions of the libraries' Fortran modules communicate.

use super::{App, MPICH, OPEN_MPI, records_everything};
use crate::common::run;
use std::collections::BTreeSet;
use std::process::Command;

fn sessions() -> App {
    App::build(MPICH, MPICH.compiler, "sessions.c", &["-DSESSIONS"])
}

#[test]
fn communicators_of_sessions_are_recorded_beside_mpi_init() {
    let app = sessions();
    records_everything(&app, &["mixed"]);
}

/// Nothing is recorded, which is said; what the program does is its own.
#[test]
fn programs_with_sessions_alone_run_as_they_do_alone() {
    let app = sessions();
    let recorded = run(&mut app.record(&[], 3, &["alone"]));
    assert_eq!((recorded.status, recorded.stdout.as_str()), (2, "done 50\ndone 50\ndone 50\n"), "{}", recorded.stderr);
    assert!(recorded.stderr.contains("sessions alone are not recorded"), "{}", recorded.stderr);
}

#[test]
fn threads_older_than_mpi_init_are_recorded() {
    for library in [OPEN_MPI, MPICH] {
        records_everything(&App::build(library, library.compiler, "sessions.c", &[]), &["threads"]);
    }
}

/// Functions that are not in the table: what they do concerns no other process, or it is collective and only sets what describes files, communicators or windows.
const LOCAL: &str = "
    add_error_class add_error_code add_error_string aint_add aint_diff alloc_mem cart_coords cart_get cart_map cart_rank cart_shift cartdim_get
    close_port comm_call_errhandler comm_compare comm_create_errhandler comm_create_keyval comm_delete_attr comm_free_keyval comm_get_attr
    comm_get_errhandler comm_get_info comm_get_name comm_get_parent comm_group comm_rank comm_remote_group comm_remote_size comm_set_attr
    comm_set_errhandler comm_set_info comm_size comm_test_inter delete_error_class delete_error_code delete_error_string dims_create
    dist_graph_neighbors dist_graph_neighbors_count errhandler_free error_class error_string f_sync_reg file_call_errhandler file_create_errhandler
    file_get_amode file_get_atomicity file_get_byte_offset file_get_errhandler file_get_group file_get_info file_get_position file_get_position_shared
    file_get_size file_get_type_extent file_get_view file_set_atomicity file_set_errhandler file_set_info finalized free_mem get_address get_count
    get_elements get_elements_x get_library_version get_processor_name get_version graph_get graph_map graph_neighbors graph_neighbors_count
    graphdims_get group_compare group_difference group_excl group_free group_from_session_pset group_incl group_intersection group_range_excl
    group_range_incl group_rank group_size group_translate_ranks group_union info_create info_create_env info_delete info_dup info_free info_get
    info_get_nkeys info_get_nthkey info_get_string info_get_valuelen info_set initialized is_thread_main lookup_name op_commutative op_create op_free
    open_port pack pack_external pack_external_size pack_size pcontrol publish_name query_thread register_datarep session_call_errhandler
    session_create_errhandler session_finalize session_get_errhandler session_get_info session_get_nth_pset session_get_num_psets
    session_get_pset_info session_init session_set_errhandler status_set_cancelled status_set_elements status_set_elements_x test_cancelled topo_test
    type_commit type_contiguous type_create_darray type_create_f90_complex type_create_f90_integer type_create_f90_real type_create_hindexed
    type_create_hindexed_block type_create_hvector type_create_indexed_block type_create_keyval type_create_resized type_create_struct
    type_create_subarray type_delete_attr type_dup type_free type_free_keyval type_get_attr type_get_contents type_get_envelope type_get_extent
    type_get_extent_x type_get_name type_get_true_extent type_get_true_extent_x type_indexed type_match_size type_set_attr type_set_name type_size
    type_size_x type_vector unpack unpack_external unpublish_name win_call_errhandler win_create_errhandler win_create_keyval win_delete_attr
    win_free_keyval win_get_attr win_get_errhandler win_get_group win_get_info win_get_name win_set_attr win_set_errhandler win_set_info
    win_shared_query wtick wtime
";

/// Each function of the module mpi_f08 that communicates is in the table, in a spelling for which the recorder stands in, or calls one that is.
#[test]
fn functions_of_mpi_f08_are_in_the_table_or_local() {
    let table: BTreeSet<String> = include_str!("../../../src/recorder/calls.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split(' ').next()?.to_lowercase()))
        .collect();
    let local: BTreeSet<&str> = LOCAL.split_whitespace().collect();
    for (library, least) in [("libmpi_usempif08.so.40", 150), ("libmpichfort.so.12", 150)] {
        let file = format!("/usr/lib/x86_64-linux-gnu/{library}");
        let names = run(Command::new("nm").args(["-D", "--defined-only", &file])).expect(0, "nm, of binutils").stdout;
        let (mut known, mut strange) = (BTreeSet::new(), BTreeSet::new());
        for name in names.lines().filter_map(|line| line.split(' ').next_back()?.strip_prefix("mpi_")) {
            // MPI_Send with a large count calls MPI_Send_c, which is recorded.
            let spellings = ["_f08_", "_f08ts_", "_f08_large_", "_f08ts_large_"];
            let Some(base) = spellings.iter().find_map(|end| name.strip_suffix(end)) else { continue };
            if table.contains(base) {
                known.insert(base.to_owned());
            } else if !local.contains(base) {
                strange.insert(base.to_owned());
            }
        }
        assert!(strange.is_empty(), "{library}: {strange:?}");
        assert!(known.len() >= least, "{library}: {} functions of the table", known.len());
    }
}
