#![allow(warnings)]
use ahma_core::{call::Program, jail::*, sandbox::*, shell::*};
use std::{
    collections::BTreeMap,
    io::Read,
    path::PathBuf,
    time::{Duration, Instant},
};
fn main() -> std::process::ExitCode {
    if let Some(c) = ahma_core::jail::run_if_asked() {
        return c;
    }
    let a: Vec<String> = std::env::args().collect();
    let tier = match a[1].as_str() {
        "core" => Tier::Core,
        "off" => Tier::Off,
        _ => Tier::Full,
    };
    let net = match std::env::var("NET").as_deref() {
        Ok("off") => Network::Off,
        Ok("loopback") => Network::Loopback,
        Ok("ports") => Network::Ports(vec![443]),
        _ => Network::Open,
    };
    let private = PrivateDir::create(&std::env::temp_dir()).unwrap();
    let variables: BTreeMap<String, String> = std::env::vars().collect();
    let host = Host {
        home: variables.get("HOME").map(PathBuf::from),
        path: variables["PATH"].clone(),
        variables: variables.clone(),
    };
    let settings = SandboxSettings {
        scope: a[2].clone().into(),
        private: private.path().into(),
        network: net,
        allow_read: vec![],
        allow_write: vec![],
        allow_tmp: false,
        toolchains: Toolchains::Auto,
        trust_workspace_config: false,
        tools_dir: ".ahma/tools".into(),
    };
    let policy = assemble(&settings, &host).unwrap();
    let launcher = Launcher::start(LauncherSettings {
        helper: "/proc/self/exe".into(),
        policy: policy.clone(),
        tier: TierChoice::Only(tier),
        shell: "/bin/bash".into(),
        variables,
        pass_variables: vec![],
        pool: PoolSettings::default(),
        max_processes: 4096,
        max_file_bytes: 1 << 34,
        quarantine: "/tmp/quarantine".into(),
    })
    .unwrap();
    let rt = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(async {
        let t = Instant::now();
        let probes = prove(&launcher).await;
        eprintln!("self-test {:?} {:?}", t.elapsed(), probes.map(|p| p.len()));
        let r = launcher
            .launch(Script {
                program: Program::Script(a[3].clone()),
                directory: policy.scope.clone(),
                environment: BTreeMap::new(),
                stdio: Stdio::Merged,
            })
            .await
            .unwrap();
        let OutputPipes::Merged(fd) = r.output else {
            panic!()
        };
        let j = std::thread::spawn(move || {
            rustix::io::ioctl_fionbio(&fd, false).unwrap();
            let mut f = std::fs::File::from(fd);
            let mut s = vec![];
            f.read_to_end(&mut s);
            s
        });
        let mut p = r.process;
        let mut st = None;
        loop {
            match p.next_event().await {
                ProcessEvent::Gone => break,
                ProcessEvent::Exited(r) => st = Some(r),
                e => panic!("{e:?}"),
            }
        }
        let out = String::from_utf8_lossy(&j.join().unwrap()).into_owned();
        println!("{out}");
        eprintln!("{st:?}");
        for i in r.tripwire.check().await {
            println!("{}", i.sentence());
        }
        if st.unwrap().status != ExitStatus::Code(0) {
            println!("HINT {:?}", hint(&out, &policy, tier));
        }
        launcher.shutdown().await;
    });
    std::process::ExitCode::SUCCESS
}
