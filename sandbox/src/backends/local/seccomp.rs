//! The filter of system calls that commands run under.
//!
//! A list of what is denied rather than of what is allowed: commands are whole systems' worth of
//! programs. What is denied with `EPERM` reaches beyond the namespaces, or has been the way into
//! kernels time and again. The table follows what container engines deny.

/// Denied whatever the arguments.
const DENIED: &[libc::c_long] = &[
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
    libc::SYS_mbind,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_set_mempolicy,
    // The clock and the name of the machine.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Told to be absent, so that programs take the older way: the flags of `clone3` lie in memory,
/// where a filter cannot look.
const ABSENT: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// All flags of `clone` that make namespaces.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// Kinds of sockets that stay inside the network namespace. Others, such as vsock, do not.
const SOCKETS: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Requests that type into a terminal for somebody else.
const TERMINAL: [u32; 2] = [0x5412, 0x541c];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const ERROR: u32 = 0x0005_0000;
const KILL: u32 = 0x8000_0000;

/// Offsets in the kernel's `seccomp_data`; of arguments the lower half.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENT_0: u32 = 16;
const ARGUMENT_1: u32 = 24;

/// The program, as the bytes of an array of `sock_filter`.
pub(crate) fn filter() -> Vec<u8> {
    let mut program = Program(Vec::new());
    program.step(LOAD, 0, 0, ARCH);
    program.step(JUMP_EQUAL, 1, 0, ARCHITECTURE);
    program.step(RETURN, 0, 0, KILL);
    program.step(LOAD, 0, 0, NUMBER);
    if cfg!(target_arch = "x86_64") {
        // The numbers of the x32 interface would pass by the table.
        program.step(JUMP_AT_LEAST, 0, 1, 0x4000_0000);
        program.refuse(libc::ENOSYS);
    }
    for (numbers, error) in [(DENIED, libc::EPERM), (ABSENT, libc::ENOSYS)] {
        for number in numbers {
            program.step(JUMP_EQUAL, 0, 1, *number as u32);
            program.refuse(error);
        }
    }
    // Each of these ends in a return, so that the number need not be loaded again.
    program.step(JUMP_EQUAL, 0, 4, libc::SYS_clone as u32);
    program.step(LOAD, 0, 0, ARGUMENT_0);
    program.step(JUMP_ANY_BIT, 0, 1, NAMESPACES);
    program.refuse(libc::EPERM);
    program.step(RETURN, 0, 0, ALLOW);
    program.step(JUMP_EQUAL, 0, SOCKETS.len() as u8 + 3, libc::SYS_socket as u32);
    program.step(LOAD, 0, 0, ARGUMENT_0);
    for (index, domain) in SOCKETS.iter().enumerate() {
        program.step(JUMP_EQUAL, (SOCKETS.len() - index) as u8, 0, *domain as u32);
    }
    program.refuse(libc::EAFNOSUPPORT);
    program.step(RETURN, 0, 0, ALLOW);
    program.step(JUMP_EQUAL, 0, 5, libc::SYS_ioctl as u32);
    program.step(LOAD, 0, 0, ARGUMENT_1);
    program.step(JUMP_EQUAL, 1, 0, TERMINAL[0]);
    program.step(JUMP_EQUAL, 0, 1, TERMINAL[1]);
    program.refuse(libc::EPERM);
    program.step(RETURN, 0, 0, ALLOW);
    program.step(RETURN, 0, 0, ALLOW);
    program.0
}

struct Program(Vec<u8>);

impl Program {
    /// `if_true` and `if_false` are instructions to leave out.
    fn step(&mut self, code: u16, if_true: u8, if_false: u8, value: u32) {
        self.0.extend(code.to_ne_bytes());
        self.0.extend([if_true, if_false]);
        self.0.extend(value.to_ne_bytes());
    }

    fn refuse(&mut self, error: i32) {
        self.step(RETURN, 0, 0, ERROR | error as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would do.
    fn run(program: &[u8], arch: u32, number: i64, arguments: [u64; 2]) -> u32 {
        let (mut value, mut position) = (0u32, 0);
        loop {
            let step = &program[position * 8..position * 8 + 8];
            let code = u16::from_ne_bytes([step[0], step[1]]);
            let constant = u32::from_ne_bytes(step[4..].try_into().unwrap());
            let holds = match code {
                LOAD => {
                    value = match constant {
                        NUMBER => number as u32,
                        ARCH => arch,
                        ARGUMENT_0 => arguments[0] as u32,
                        ARGUMENT_1 => arguments[1] as u32,
                        other => panic!("loads {other}"),
                    };
                    position += 1;
                    continue;
                }
                RETURN => return constant,
                JUMP_EQUAL => value == constant,
                JUMP_AT_LEAST => value >= constant,
                JUMP_ANY_BIT => value & constant != 0,
                other => panic!("does {other}"),
            };
            position += 1 + usize::from(if holds { step[2] } else { step[3] });
        }
    }

    #[test]
    fn the_filter_denies_what_leads_out_and_allows_the_rest() {
        let program = filter();
        let call = |number, arguments| run(&program, ARCHITECTURE, number, arguments);
        let error = |number: i32| ERROR | number as u32;
        for number in DENIED {
            assert_eq!(call(*number, [0, 0]), error(libc::EPERM), "{number}");
        }
        assert_eq!(call(libc::SYS_clone3, [0, 0]), error(libc::ENOSYS));
        for number in [libc::SYS_read, libc::SYS_execve, libc::SYS_clone, libc::SYS_ioctl] {
            assert_eq!(call(number, [0, 0]), ALLOW, "{number}");
        }
        let user = libc::CLONE_NEWUSER as u64;
        assert_eq!(call(libc::SYS_clone, [user | 17, 0]), error(libc::EPERM));
        for domain in SOCKETS {
            assert_eq!(call(libc::SYS_socket, [domain as u64, 0]), ALLOW);
        }
        for domain in [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG] {
            assert_eq!(call(libc::SYS_socket, [domain as u64, 0]), error(libc::EAFNOSUPPORT));
        }
        assert_eq!(call(libc::SYS_ioctl, [0, 0x5412]), error(libc::EPERM));
        assert_eq!(call(libc::SYS_ioctl, [0, 0x541c]), error(libc::EPERM));
        assert_eq!(run(&program, 0x4000_0003, libc::SYS_read, [0, 0]), KILL);
    }
}
