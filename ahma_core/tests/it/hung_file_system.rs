//! A file system whose server is dead, which only Linux lets a test make.

use std::{io::Read, os::fd::OwnedFd, path::Path, time::Duration};

use ahma_core::sandbox::Tier;

use crate::processes::{Bench, wait_readable, wait_until_gone};

/// A file system that says nothing after the greeting, as one whose server is dead.
struct Hung {
    device: std::fs::File,
    place: std::path::PathBuf,
}

impl Hung {
    /// Needs the rights of root, and `/dev/fuse`.
    fn mount(place: &Path) -> std::io::Result<Self> {
        use std::{io::Write, os::fd::AsRawFd};
        const REQUEST_BYTES: usize = 64 << 10;
        let mut device = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let options = std::ffi::CString::new(options).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("hung", place, "fuse", flags, Some(options.as_c_str()))?;
        let mut request = vec![0; REQUEST_BYTES];
        let length = device.read(&mut request)?;
        assert!(length >= 16, "a request begins with its number");
        // Length, no error, the number of the request; then version 7.31 and how much may be written at once.
        let mut greeting = [0_u8; 80];
        greeting[0] = 80;
        greeting[8..16].copy_from_slice(&request[8..16]);
        greeting[16] = 7;
        greeting[20] = 31;
        greeting[37] = 16;
        greeting[40] = 1;
        device.write_all(&greeting)?;
        Ok(Self {
            device,
            place: place.to_owned(),
        })
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.place, rustix::mount::UnmountFlags::DETACH).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_system_that_never_answers_keeps_no_command_from_its_end() {
    // The view of the full tier is made before this file system is there.
    for tier in [Tier::Core, Tier::Off] {
        let bench = Bench::start(tier);
        let place = bench.scope.path().join("hung");
        std::fs::create_dir(&place).unwrap();
        let hung = match Hung::mount(&place) {
            Ok(hung) => hung,
            Err(error) => {
                let reason = format!("no file system can be mounted here: {error}");
                if rustix::process::getuid().is_root() {
                    test_support::skip(&reason);
                } else {
                    eprintln!("skipped: {reason}");
                }
                return;
            }
        };
        let running = bench
            .launch("exec python3 -c 'import os; os.chmod(\"hung/file\", 0o600)'")
            .await;
        let device: OwnedFd = hung.device.try_clone().unwrap().into();
        wait_readable(&device);
        running.process.stop(libc::SIGTERM, Duration::from_millis(100));
        wait_until_gone(running).await;
        bench.launcher.shutdown().await;
    }
}
