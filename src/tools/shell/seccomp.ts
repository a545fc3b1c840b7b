// The system calls that a confined command may not make, as a program for the kernel's filter (classic BPF, given to
// bubblewrap). It narrows what the namespaces leave open. Files and addresses are decided by mounts and the network
// namespace.

/** In the order of the checks: frequent calls first. */
type Numbers = {
  readonly ioctl: number
  readonly socket: number
  readonly socketpair: number
  readonly clone: number
  readonly clone3: number
  readonly unshare: number
  readonly refused: readonly number[]
}
type Architecture = { readonly audit: number; readonly numbers: Numbers }
type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number]

/** The same on both architectures: io_uring_setup, _enter and _register, pidfd_getfd. */
const REFUSED_EVERYWHERE = [425, 426, 427, 438]
// Per architecture: ptrace, process_vm_readv and _writev, setns, add_key, request_key, keyctl, bpf, perf_event_open, userfaultfd.
const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    numbers: {
      ioctl: 16,
      socket: 41,
      socketpair: 53,
      clone: 56,
      clone3: 435,
      unshare: 272,
      refused: [101, 310, 311, 308, 248, 249, 250, 321, 298, 323, ...REFUSED_EVERYWHERE],
    },
  },
  arm64: {
    audit: 0xc00000b7,
    numbers: {
      ioctl: 29,
      socket: 198,
      socketpair: 199,
      clone: 220,
      clone3: 435,
      unshare: 97,
      refused: [117, 270, 271, 268, 217, 218, 219, 280, 241, 282, ...REFUSED_EVERYWHERE],
    },
  },
}

/** x32 programs use other numbers for the calls of x86-64. We have none, and every number would need a second line. */
const X32 = 0x40000000
const CLONE_NEWUSER = 0x10000000
/** Both insert characters into a terminal's input, as if they had been typed. */
const [TIOCSTI, TIOCLINUX] = [0x5412, 0x541c]
const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE] = [1, 2, 10, 16, 0]
const [SOCK_STREAM, SOCK_SEQPACKET, SOCK_TYPE_MASK] = [1, 5, 0xf]
const [EPERM, ENOSYS, EAFNOSUPPORT] = [1, 38, 97]

const [LOAD, AND, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_BITS, RETURN] = [0x20, 0x54, 0x15, 0x35, 0x45, 0x06]
const KILL = [RETURN, 0, 0, 0x80000000] as const
const ALLOW = [RETURN, 0, 0, 0x7fff0000] as const
/**
 * Offsets in `struct seccomp_data`. Of an argument only the lower half is read: the kernel takes all of these as 32
 * bits.
 */
const [NUMBER_AT, ARCHITECTURE_AT] = [0, 4]
const argumentAt = (index: number): number => 16 + 8 * index

/** Null for a processor that is not in the table. `localSockets`: may a command open unix sockets? */
export function systemCallFilter(arch: string = process.arch, localSockets = false): Uint8Array | null {
  const known = ARCHITECTURES[arch]
  return known ? encodeProgram(buildProgram(known, localSockets)) : null
}

function buildProgram({ audit, numbers }: Architecture, localSockets: boolean): readonly Instruction[] {
  return [
    loadAt(ARCHITECTURE_AT),
    ...onMismatch(JUMP_EQUAL, audit, KILL),
    loadAt(NUMBER_AT),
    ...onMatch(JUMP_AT_LEAST, X32, [KILL]),
    ...onMatch(JUMP_EQUAL, numbers.ioctl, ioctl),
    ...onMatch(JUMP_EQUAL, numbers.clone, namespaces),
    // Its flags lie in memory, where a filter cannot look. A program that is told the call does not exist uses `clone`.
    ...onMatch(JUMP_EQUAL, numbers.clone3, [failWith(ENOSYS)]),
    ...onMatch(JUMP_EQUAL, numbers.socket, sockets(localSockets ? [AF_UNIX, AF_INET, AF_INET6] : [AF_INET, AF_INET6])),
    ...onMatch(JUMP_EQUAL, numbers.socketpair, localSockets ? sockets([AF_UNIX]) : pairs),
    ...onMatch(JUMP_EQUAL, numbers.unshare, namespaces),
    ...numbers.refused.flatMap((number) => onMatch(JUMP_EQUAL, number, [failWith(EPERM)])),
    ALLOW,
  ]
}

const ioctl: readonly Instruction[] = [
  loadAt(argumentAt(1)),
  ...onMatch(JUMP_EQUAL, TIOCSTI, [failWith(EPERM)]),
  ...onMatch(JUMP_EQUAL, TIOCLINUX, [failWith(EPERM)]),
  ALLOW,
]

const namespaces: readonly Instruction[] = [
  loadAt(argumentAt(0)),
  ...onMatch(JUMP_BITS, CLONE_NEWUSER, [failWith(EPERM)]),
  ALLOW,
]

/**
 * Only the named families pass, so a new one is refused. Unix sockets are refused by default: a host socket can be
 * reached by any of its names, even on a read-only mount, and a filter cannot read the address. Routes stay allowed,
 * because programs list their own addresses with them.
 */
const sockets = (families: readonly number[]): readonly Instruction[] => [
  loadAt(argumentAt(0)),
  ...families.flatMap((family) => onMatch(JUMP_EQUAL, family, [ALLOW])),
  ...onMismatch(JUMP_EQUAL, AF_NETLINK, failWith(EAFNOSUPPORT)),
  loadAt(argumentAt(2)),
  ...onMismatch(JUMP_EQUAL, NETLINK_ROUTE, failWith(EAFNOSUPPORT)),
  ALLOW,
]

/**
 * Programs talk to their children over pairs, which stay connected to each other. A pair of datagram sockets can send
 * anywhere, so it is refused.
 */
const pairs: readonly Instruction[] = [
  loadAt(argumentAt(0)),
  ...onMismatch(JUMP_EQUAL, AF_UNIX, failWith(EAFNOSUPPORT)),
  loadAt(argumentAt(1)),
  [AND, 0, 0, SOCK_TYPE_MASK],
  ...onMatch(JUMP_EQUAL, SOCK_STREAM, [ALLOW]),
  ...onMatch(JUMP_EQUAL, SOCK_SEQPACKET, [ALLOW]),
  failWith(EAFNOSUPPORT),
]

function loadAt(offset: number): Instruction {
  return [LOAD, 0, 0, offset]
}

function failWith(errno: number): Instruction {
  return [RETURN, 0, 0, 0x00050000 | errno]
}

/** Compares the loaded value. The instructions after a match end the program, so nothing has to be loaded again. */
function onMatch(test: number, value: number, then: readonly Instruction[]): readonly Instruction[] {
  return [[test, 0, then.length, value], ...then]
}

function onMismatch(test: number, value: number, otherwise: Instruction): readonly Instruction[] {
  return [[test, 1, 0, value], otherwise]
}

function encodeProgram(instructions: readonly Instruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(8 * instructions.length))
  for (const [index, [code, jumpTrue, jumpFalse, value]] of instructions.entries()) {
    bytes.setUint16(8 * index, code, true)
    bytes.setUint8(8 * index + 2, jumpTrue)
    bytes.setUint8(8 * index + 3, jumpFalse)
    bytes.setUint32(8 * index + 4, value, true)
  }
  return new Uint8Array(bytes.buffer)
}
