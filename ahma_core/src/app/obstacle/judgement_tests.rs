use super::*;

/// Debian 12 as it comes, for an ordinary user.
fn debian_12() -> MachineFacts {
    MachineFacts {
        landlock_abi: 2,
        kernel_release: "6.1.0-55-amd64".to_owned(),
        security_modules: Some("lockdown,capability,landlock,yama,apparmor,tomoyo,bpf".to_owned()),
        max_user_namespaces: Some(11_580),
        unprivileged_userns_clone: Some(1),
        apparmor_label: Some("unconfined".to_owned()),
        ..MachineFacts::default()
    }
}

/// Ubuntu 24.04 as it comes.
fn ubuntu_24() -> MachineFacts {
    MachineFacts {
        landlock_abi: 4,
        kernel_release: "6.8.0-149-generic".to_owned(),
        apparmor_restricts_userns: Some(1),
        ..debian_12()
    }
}

fn wsl() -> MachineFacts {
    MachineFacts {
        landlock_abi: 3,
        kernel_release: "6.6.87.2-microsoft-standard-WSL2".to_owned(),
        // WSL does not mount it.
        security_modules: None,
        unprivileged_userns_clone: None,
        apparmor_label: None,
        ..debian_12()
    }
}

fn without_landlock(facts: MachineFacts) -> MachineFacts {
    MachineFacts {
        landlock_abi: 0,
        ..facts
    }
}

fn in_container(container: Container) -> MachineFacts {
    MachineFacts {
        container: Some(container),
        is_root: true,
        is_filtered: true,
        apparmor_label: Some("docker-default (enforce)".to_owned()),
        ..ubuntu_24()
    }
}

#[test]
fn each_machine_has_its_obstacle() {
    let cases = [
        (ubuntu_24(), Obstacle::AppArmor),
        (
            MachineFacts {
                apparmor_label: Some("ahma_mcp (unconfined)".to_owned()),
                ..ubuntu_24()
            },
            Obstacle::Unknown,
        ),
        (
            MachineFacts {
                is_root: true,
                ..ubuntu_24()
            },
            Obstacle::Unknown,
        ),
        (
            MachineFacts {
                max_user_namespaces: Some(0),
                ..ubuntu_24()
            },
            Obstacle::NoUserNamespaces,
        ),
        (
            MachineFacts {
                unprivileged_userns_clone: Some(0),
                ..debian_12()
            },
            Obstacle::UserNamespacesForRoot,
        ),
        (
            MachineFacts {
                unprivileged_userns_clone: Some(0),
                is_root: true,
                ..debian_12()
            },
            Obstacle::Unknown,
        ),
        (
            MachineFacts {
                max_user_namespaces: Some(0),
                is_root: true,
                ..debian_12()
            },
            Obstacle::NoUserNamespaces,
        ),
        (
            in_container(Container::Docker),
            Obstacle::Contained(Container::Docker),
        ),
        (
            in_container(Container::Kubernetes),
            Obstacle::Contained(Container::Kubernetes),
        ),
        (
            without_landlock(in_container(Container::Podman)),
            Obstacle::LandlockFiltered(Container::Podman),
        ),
        (
            MachineFacts {
                security_modules: Some("capability,yama".to_owned()),
                ..without_landlock(in_container(Container::Docker))
            },
            Obstacle::LandlockOff,
        ),
        (
            MachineFacts {
                is_filtered: true,
                ..debian_12()
            },
            Obstacle::OuterSandbox,
        ),
        (wsl(), Obstacle::Wsl),
        (without_landlock(wsl()), Obstacle::Wsl),
        (
            MachineFacts {
                kernel_release: "5.10.0-35-amd64".to_owned(),
                security_modules: Some("lockdown,capability,yama,apparmor,tomoyo".to_owned()),
                ..without_landlock(debian_12())
            },
            Obstacle::OldKernel,
        ),
        (
            MachineFacts {
                security_modules: Some("capability,yama,apparmor".to_owned()),
                ..without_landlock(debian_12())
            },
            Obstacle::LandlockOff,
        ),
        (debian_12(), Obstacle::Unknown),
    ];
    for (facts, expected) in cases {
        assert_eq!(Obstacle::of(&facts), expected, "{facts:?}");
    }
}

#[test]
fn no_remedy_begins_with_a_weaker_machine() {
    let all = [
        Obstacle::OldKernel,
        Obstacle::Wsl,
        Obstacle::LandlockOff,
        Obstacle::LandlockFiltered(Container::Docker),
        Obstacle::NoUserNamespaces,
        Obstacle::UserNamespacesForRoot,
        Obstacle::AppArmor,
        Obstacle::Contained(Container::Docker),
        Obstacle::Contained(Container::Podman),
        Obstacle::Contained(Container::Kubernetes),
        Obstacle::Contained(Container::Other),
        Obstacle::OuterSandbox,
        Obstacle::Unknown,
    ];
    for obstacle in all {
        let (_, remedy) = obstacle.reason_and_remedy();
        assert!(
            !remedy.contains("apparmor_restrict_unprivileged_userns"),
            "{remedy}"
        );
        assert!(!remedy.starts_with("--no-sandbox"), "{remedy}");
    }
    insta::assert_snapshot!(all.map(|obstacle| format!("{obstacle}\n")).join("\n"));
}
