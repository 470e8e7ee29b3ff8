use super::*;
use clc_trace::{Result, Ticks};
use proptest::prelude::*;

fn write(path: &Path, times: &[i64]) -> Result<u64> {
    let mut writer = TruthWriter::create(path, LocationId(7), 1_000_000_000)?;
    for &time in times {
        writer.push(Ticks(time))?;
    }
    writer.finish()
}

fn read(path: &Path) -> Result<Vec<i64>> {
    let mut reader = TruthReader::open(path)?;
    assert_eq!((reader.location(), reader.resolution()), (LocationId(7), 1_000_000_000));
    let mut times = Vec::new();
    while let Some(time) = reader.next_time()? {
        times.push(time.0);
    }
    assert_eq!(reader.events(), times.len() as u64);
    Ok(times)
}

fn in_directory<T>(test: impl FnOnce(&Path) -> T) -> T {
    let directory = tempfile::tempdir().expect("a temporary directory");
    test(&directory.path().join("7.truth"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(mut times in proptest::collection::vec(any::<i64>(), 0..3000)) {
        times.sort_unstable();
        // Differences must fit in an i64, as those of timestamps do.
        let times: Vec<i64> = times.into_iter().map(|time| time / 2).collect();
        in_directory(|path| {
            prop_assert_eq!(write(path, &times).map_err(fail)?, times.len() as u64);
            prop_assert_eq!(read(path).map_err(fail)?, times);
            Ok(())
        })?;
    }

    #[test]
    fn any_damaged_byte_is_noticed(at in any::<prop::sample::Index>(), change in 1u8..=255) {
        let times: Vec<i64> = (0..6000).map(|i| 1_000_000 + i * i * 37).collect();
        in_directory(|path| {
            write(path, &times).map_err(fail)?;
            let mut bytes = std::fs::read(path)?;
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            std::fs::write(path, &bytes)?;
            let error = read(path).err().map(|e| e.to_string()).unwrap_or_default();
            prop_assert!(error.contains("7.truth"), "byte {at}: '{error}'");
            Ok(())
        })?;
    }

    #[test]
    fn any_truncation_is_noticed(keep in any::<prop::sample::Index>()) {
        let times: Vec<i64> = (0..6000).map(|i| i * 1_000_037).collect();
        in_directory(|path| {
            write(path, &times).map_err(fail)?;
            let bytes = std::fs::read(path)?;
            std::fs::write(path, &bytes[..keep.index(bytes.len())])?;
            prop_assert!(read(path).is_err_and(|e| e.to_string().contains("7.truth")));
            Ok(())
        })?;
    }

    #[test]
    fn garbage_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        in_directory(|path| {
            std::fs::write(path, &bytes)?;
            prop_assert!(TruthReader::open(path).is_err());
            Ok(())
        })?;
    }
}

fn fail(error: clc_trace::Error) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

#[test]
fn mistakes_are_explained() -> Result<()> {
    in_directory(|path| {
        let mut writer = TruthWriter::create(path, LocationId(7), 1)?;
        writer.push(Ticks(5))?;
        let error = writer.push(Ticks(4)).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("location 7, event 2") && error.contains("must not decrease"), "{error}");
        drop(writer);
        let error = read(path).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("never finished"), "{error}");

        write(path, &[1, 2, 3])?;
        let mut bytes = std::fs::read(path).expect("the file that was just written");
        bytes.push(0);
        std::fs::write(path, &bytes).expect("a writable directory");
        let error = read(path).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("after its last event"), "{error}");
        assert!(TruthReader::open(Path::new("/nonexistent/1.truth")).is_err_and(|e| e.file.is_some()));
        assert_eq!(super::path(Path::new("a"), LocationId(3)), Path::new("a/truth/3.truth"));
        Ok(())
    })
}

#[test]
fn a_regular_trace_takes_two_bytes_per_event() -> Result<()> {
    in_directory(|path| {
        let times: Vec<i64> = (0..100_000).map(|i| 1_000_000_000_000 + i * 1_000).collect();
        write(path, &times)?;
        assert_eq!(read(path)?, times);
        let size = std::fs::metadata(path).map(|m| m.len()).unwrap_or(u64::MAX);
        assert!(size < 2 * 100_000 + 1000, "{size} bytes");
        Ok(())
    })
}
