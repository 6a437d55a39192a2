//! The full tier's view: namespaces, and a root file system in which only what the policy names exists.
//!
//! The view is built once, by the jail, as one thread. Each operation then gets a copy of it with a pid namespace and a
//! `/proc` of its own. Whatever goes wrong here ends the attempt: the server falls back to another tier or refuses, it
//! never goes on with half a view.

use std::{
    collections::BTreeSet,
    ffi::CString,
    fs, io,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::symlink},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    mount::{MountFlags, MountPropagationFlags, UnmountFlags},
    thread::UnshareFlags,
};

use crate::sandbox::{Access, Network, Policy, held, resolved_path::ResolvedPath};

/// The step that failed, and the kernel's error.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub(crate) struct ViewError {
    step: String,
    source: io::Error,
}

trait StepResult<T> {
    fn step(self, step: impl Into<String>) -> Result<T, ViewError>;
}

impl<T, E: Into<io::Error>> StepResult<T> for Result<T, E> {
    fn step(self, step: impl Into<String>) -> Result<T, ViewError> {
        self.map_err(|error| ViewError {
            step: step.into(),
            source: error.into(),
        })
    }
}

/// Moves the calling, single-threaded process into new namespaces and the policy's view.
pub(crate) fn enter(policy: &Policy) -> Result<(), ViewError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    let own_network = match policy.network {
        Network::Open | Network::Ports(_) => false,
        Network::Loopback | Network::Off => true,
    };
    if own_network {
        flags |= UnshareFlags::NEWNET;
    }
    // SAFETY: the jail has one thread and shares no memory or descriptors with another process.
    unsafe { rustix::thread::unshare_unsafe(flags) }.step("cannot make user and mount namespaces")?;
    // The same numbers inside as outside: files keep their owners. No other user exists in here.
    fs::write("/proc/self/setgroups", "deny").step("cannot fix the groups of the user namespace")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", uid.as_raw())).step("cannot map the user")?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", gid.as_raw())).step("cannot map the group")?;
    if policy.network == Network::Loopback {
        raise_loopback().step("cannot bring the loopback interface up")?;
    }
    let mut view = View::create(policy)?;
    view.fill(policy)?;
    view.close()
}

/// Mounts a `/proc` that shows only the caller's pid namespace. Called by the first process of that namespace.
pub(crate) fn mount_own_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount("proc", "/proc", "proc", flags, None)?)
}

/// The root file system under construction.
struct View {
    root: PathBuf,
    /// Paths that are mounted already, with whether they may be written.
    bound: Vec<(PathBuf, bool)>,
    made: BTreeSet<PathBuf>,
}

impl View {
    fn create(policy: &Policy) -> Result<Self, ViewError> {
        rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
            .step("cannot make the mounts private")?;
        let root = policy.private.join("root");
        fs::create_dir_all(&root).step(format!("cannot create {}", root.display()))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount_tmpfs(&root, flags, "mode=755,size=1m")?;
        Ok(Self {
            root,
            bound: Vec::new(),
            made: BTreeSet::new(),
        })
    }

    fn fill(&mut self, policy: &Policy) -> Result<(), ViewError> {
        self.devices()?;
        self.directory(Path::new("/run"))?;
        // The new instances of `/proc` may only be mounted while a whole one is visible.
        self.bind(Path::new("/proc"), Path::new("/proc"))?;
        if !policy.host_temp {
            self.bind(&policy.temp(), Path::new("/tmp"))?;
            self.bound.push((PathBuf::from("/tmp"), true));
        }
        // Parents before what lies below them.
        let mut shown = BTreeSet::from([(policy.scope.clone(), policy.scope_access == Access::Write)]);
        if policy.host_temp {
            shown.extend(self.links(&policy.temp())?.map(|real| (real, true)));
        }
        self.links(&policy.scope)?;
        for grant in &policy.grants {
            let is_there = self.links(&grant.path)?.is_some() && grant.real.symlink_metadata().is_ok();
            if is_there {
                shown.insert((grant.real.clone(), grant.access == Access::Write));
            }
        }
        for (real, writable) in shown {
            self.show(real, writable)?;
        }
        for (number, path) in policy.overlays.iter().enumerate() {
            self.overlay(path, &policy.private.join(format!("overlay{number}")))?;
        }
        for path in &policy.protected {
            self.protect(path, &policy.scope)?;
        }
        Ok(())
    }

    /// Makes the view the root of the calling process and lets go of the old one.
    fn close(self) -> Result<(), ViewError> {
        set_attributes(&self.root, READ_ONLY, Depth::Single).step("cannot make the new root read-only")?;
        std::env::set_current_dir(&self.root).step("cannot enter the new root")?;
        rustix::process::pivot_root(".", ".").step("cannot change the root")?;
        rustix::mount::unmount(".", UnmountFlags::DETACH).step("cannot let go of the old root")?;
        std::env::set_current_dir("/").step("cannot enter the new root")
    }

    /// Shows a host path at the same place.
    fn show(&mut self, real: PathBuf, writable: bool) -> Result<(), ViewError> {
        let holder = self.bound.iter().rev().find(|(bound, _)| real.starts_with(bound));
        if holder
            .is_some_and(|(bound, held_writable)| *held_writable == writable && *bound != Path::new("/tmp"))
        {
            return Ok(());
        }
        self.bind(&real, &real)?;
        self.set_flags(&real, if writable { NO_DEVICES } else { READ_ONLY })?;
        self.bound.push((real, writable));
        Ok(())
    }

    /// Sets the flags of what was just mounted. At once: later it would reach what is mounted below, which may be open.
    fn set_flags(&self, path: &Path, attributes: u64) -> Result<(), ViewError> {
        set_attributes(&self.inside(path), attributes, Depth::Recursive)
            .step(format!("cannot set the mount flags of {}", path.display()))
    }

    /// Repeats in the view every symbolic link on the way to `path`. Returns where it leads, if anywhere.
    fn links(&mut self, path: &Path) -> Result<Option<PathBuf>, ViewError> {
        let Some(resolved) = ResolvedPath::of(path) else {
            return Ok(None);
        };
        for link in &resolved.links {
            let place = self.inside(link);
            if fs::symlink_metadata(&place).is_err() {
                self.parents(link)?;
                fs::read_link(link)
                    .and_then(|target| symlink(target, &place))
                    .step(format!("cannot repeat the link {}", link.display()))?;
            }
        }
        Ok(Some(resolved.end))
    }

    /// A copy-on-write view of a host directory: commands may write it, the host's copy stays as it is.
    fn overlay(&mut self, path: &Path, private: &Path) -> Result<(), ViewError> {
        let Some(real) = self.links(path)? else {
            return Ok(());
        };
        let (upper, work) = (private.join("upper"), private.join("work"));
        for directory in [&upper, &work] {
            fs::create_dir_all(directory).step(format!("cannot create {}", directory.display()))?;
        }
        // What a mount that need not last leaves behind keeps others from taking its place, as that of a new jail.
        match fs::remove_dir_all(work.join("work/incompat")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).step(format!("cannot mount again on {}", work.display()));
            }
            Ok(()) | Err(_) => {}
        }
        // Without `volatile` its end would write out everything that waits to be written on the file system of `upper`.
        let options = format!(
            "lowerdir={},upperdir={},workdir={},userxattr,volatile",
            overlay_escape(&real),
            overlay_escape(&upper),
            overlay_escape(&work)
        );
        self.point(&real, &real)?;
        let options = CString::new(options).step("an overlay path holds a NUL byte")?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount(
            "overlay",
            self.inside(&real),
            "overlay",
            flags,
            options.as_c_str(),
        )
        .step(format!("cannot overlay {}", real.display()))
    }

    /// Closes a path of the scope against writing. `.git` itself is only pinned, so that it cannot be renamed away.
    fn protect(&mut self, path: &Path, scope: &Path) -> Result<(), ViewError> {
        if path.symlink_metadata().is_err() || path.canonicalize().ok().as_deref() != Some(path) {
            // Missing, as most are, or a link: the guard keeps those.
            return Ok(());
        }
        let is_pinned = path == scope.join(".git") && path.is_dir();
        self.bind(path, path)?;
        self.set_flags(path, if is_pinned { NO_DEVICES } else { READ_ONLY })
    }

    fn devices(&mut self) -> Result<(), ViewError> {
        self.directory(Path::new("/dev"))?;
        for device in ["null", "zero", "full", "random", "urandom", "tty"] {
            let path = Path::new("/dev").join(device);
            self.bind(&path, &path)?;
            // Writing to a device changes no file; its mode, owner and times are the host's.
            self.set_flags(&path, READ_ONLY_DEVICE)?;
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            symlink(target, self.root.join("dev").join(name)).step(format!("cannot make /dev/{name}"))?;
        }
        let pts = self.directory(Path::new("/dev/pts"))?;
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        let options = c"newinstance,ptmxmode=0666,mode=620";
        rustix::mount::mount("devpts", pts, "devpts", flags, options)
            .step("cannot mount private terminals")?;
        let shm = self.directory(Path::new("/dev/shm"))?;
        mount_tmpfs(&shm, MountFlags::NOSUID | MountFlags::NODEV, "mode=1777")
    }

    /// Shows `from`, a path without links, at `to`. A link that appears on the way meanwhile is not followed.
    fn bind(&mut self, from: &Path, to: &Path) -> Result<(), ViewError> {
        self.point(from, to)?;
        let step = || format!("cannot show {} as {}", from.display(), to.display());
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let held =
            rustix::fs::openat2(CWD, from, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).step(step())?;
        rustix::mount::mount_bind_recursive(held::same_path(&held), self.inside(to)).step(step())
    }

    /// Makes sure that something can be mounted at `to`.
    fn point(&mut self, from: &Path, to: &Path) -> Result<(), ViewError> {
        let place = self.inside(to);
        if fs::symlink_metadata(&place).is_ok() {
            return Ok(());
        }
        if from.is_dir() {
            self.directory(to).map(drop)
        } else {
            self.parents(to)?;
            fs::write(&place, "").step(format!("cannot make a mount point for {}", to.display()))
        }
    }

    fn directory(&mut self, path: &Path) -> Result<PathBuf, ViewError> {
        let place = self.inside(path);
        if self.made.insert(place.clone()) {
            fs::create_dir_all(&place).step(format!("cannot make {} in the new root", path.display()))?;
        }
        Ok(place)
    }

    fn parents(&mut self, path: &Path) -> Result<(), ViewError> {
        path.parent()
            .map_or(Ok(()), |parent| self.directory(parent).map(drop))
    }

    fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

fn overlay_escape(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,")
}

fn mount_tmpfs(place: &Path, flags: MountFlags, options: &str) -> Result<(), ViewError> {
    let options = CString::new(options).step("bad mount options")?;
    rustix::mount::mount("tmpfs", place, "tmpfs", flags, options.as_c_str()).step(format!(
        "cannot mount a memory file system at {}",
        place.display()
    ))
}

const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
const READ_ONLY_DEVICE: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
const NO_DEVICES: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

#[derive(Clone, Copy)]
enum Depth {
    Single,
    Recursive,
}

fn set_attributes(path: &Path, attributes: u64, depth: Depth) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let request = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = match depth {
        Depth::Single => 0,
        Depth::Recursive => libc::AT_RECURSIVE,
    };
    // SAFETY: the path ends in NUL, and the structure has the size that is passed with it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const request,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn raise_loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketType};
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: a zeroed ifreq is a valid one; all its fields are plain numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, letter) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *place = *letter as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
