use super::*;

/// What a program begins with: another architecture's call numbers mean other calls, so they end the process.
fn refuses_other_architectures(program: &BpfProgram) -> bool {
    const ARCHITECTURE_OFFSET: u32 = 4;
    program
        .first()
        .is_some_and(|step| step.code == LOAD_WORD && step.k == ARCHITECTURE_OFFSET)
}

#[test]
fn filters_are_built_for_both_architectures_and_look_at_theirs_first() {
    let networks = [
        Network::Open,
        Network::Loopback,
        Network::Off,
        Network::Ports(vec![443]),
    ];
    for arch in [TargetArch::x86_64, TargetArch::aarch64] {
        let mut maps = vec![attributes()];
        for network in &networks {
            for tier in [Tier::Full, Tier::Core] {
                for unix_sockets in [UnixSockets::Allowed, UnixSockets::Denied] {
                    maps.push(never_needed(network, tier, unix_sockets).unwrap());
                }
            }
        }
        for map in maps {
            let program = compile_for(arch, map, SeccompAction::Errno(1)).unwrap();
            assert!(refuses_other_architectures(&program), "{arch:?}");
        }
    }
    assert!(refuses_other_architectures(&asked().unwrap()));
}
