// The system calls a confined command may not make, as a program for the kernel's filter (classic BPF, given to bubblewrap).
// It narrows what the namespaces leave open. It does not decide about files or addresses: mounts and the network namespace do.

/** In the order in which they are asked about: the frequent ones first. */
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

/** The same on both: io_uring_setup, _enter and _register, pidfd_getfd. */
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

/** x32 programs call the kernel of x86-64 by other numbers. There are none of ours, and every number would need a second line. */
const X32 = 0x40000000
const CLONE_NEWUSER = 0x10000000
/** Both put characters into the input of a terminal, as if they had been typed. */
const [TIOCSTI, TIOCLINUX] = [0x5412, 0x541c]
const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE] = [1, 2, 10, 16, 0]
const [SOCK_STREAM, SOCK_SEQPACKET, SOCK_TYPE_MASK] = [1, 5, 0xf]
const [EPERM, ENOSYS, EAFNOSUPPORT] = [1, 38, 97]

const [LOAD, AND, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_BITS, RETURN] = [0x20, 0x54, 0x15, 0x35, 0x45, 0x06]
const KILL = [RETURN, 0, 0, 0x80000000] as const
const ALLOW = [RETURN, 0, 0, 0x7fff0000] as const
/** Where `struct seccomp_data` has things. Of an argument the lower half: the kernel takes all of these as 32 bits. */
const [NUMBER_AT, ARCHITECTURE_AT] = [0, 4]
const argumentAt = (index: number): number => 16 + 8 * index

/** Null for a processor whose system calls are not in the table. `localSockets`: may a command open unix sockets? */
export function filterFor(arch: string = process.arch, localSockets = false): Uint8Array | null {
  const known = ARCHITECTURES[arch]
  return known ? encode(program(known, localSockets)) : null
}

function program({ audit, numbers }: Architecture, localSockets: boolean): readonly Instruction[] {
  return [
    load(ARCHITECTURE_AT),
    ...unless(JUMP_EQUAL, audit, KILL),
    load(NUMBER_AT),
    ...when(JUMP_AT_LEAST, X32, [KILL]),
    ...when(JUMP_EQUAL, numbers.ioctl, ioctl),
    ...when(JUMP_EQUAL, numbers.clone, namespaces),
    // Its flags lie in memory, where a filter cannot look. A program that is told that it does not exist uses `clone`.
    ...when(JUMP_EQUAL, numbers.clone3, [fail(ENOSYS)]),
    ...when(JUMP_EQUAL, numbers.socket, sockets(localSockets ? [AF_UNIX, AF_INET, AF_INET6] : [AF_INET, AF_INET6])),
    ...when(JUMP_EQUAL, numbers.socketpair, localSockets ? sockets([AF_UNIX]) : pairs),
    ...when(JUMP_EQUAL, numbers.unshare, namespaces),
    ...numbers.refused.flatMap((number) => when(JUMP_EQUAL, number, [fail(EPERM)])),
    ALLOW,
  ]
}

const ioctl: readonly Instruction[] = [
  load(argumentAt(1)),
  ...when(JUMP_EQUAL, TIOCSTI, [fail(EPERM)]),
  ...when(JUMP_EQUAL, TIOCLINUX, [fail(EPERM)]),
  ALLOW,
]

const namespaces: readonly Instruction[] = [
  load(argumentAt(0)),
  ...when(JUMP_BITS, CLONE_NEWUSER, [fail(EPERM)]),
  ALLOW,
]

/**
 * Only the families named pass, so a new one is refused. By default not unix sockets: one of the host can be connected to by any
 * of its names, also on a read-only mount, and a filter cannot read the address. Routes are how programs list their own addresses.
 */
const sockets = (families: readonly number[]): readonly Instruction[] => [
  load(argumentAt(0)),
  ...families.flatMap((family) => when(JUMP_EQUAL, family, [ALLOW])),
  ...unless(JUMP_EQUAL, AF_NETLINK, fail(EAFNOSUPPORT)),
  load(argumentAt(2)),
  ...unless(JUMP_EQUAL, NETLINK_ROUTE, fail(EAFNOSUPPORT)),
  ALLOW,
]

/** Programs talk to their children over pairs, which stay connected to each other. A pair of datagram sockets can send anywhere. */
const pairs: readonly Instruction[] = [
  load(argumentAt(0)),
  ...unless(JUMP_EQUAL, AF_UNIX, fail(EAFNOSUPPORT)),
  load(argumentAt(1)),
  [AND, 0, 0, SOCK_TYPE_MASK],
  ...when(JUMP_EQUAL, SOCK_STREAM, [ALLOW]),
  ...when(JUMP_EQUAL, SOCK_SEQPACKET, [ALLOW]),
  fail(EAFNOSUPPORT),
]

function load(offset: number): Instruction {
  return [LOAD, 0, 0, offset]
}

function fail(errno: number): Instruction {
  return [RETURN, 0, 0, 0x00050000 | errno]
}

/** What was loaded is compared; what then happens ends the program, so nothing has to be loaded again after it. */
function when(test: number, value: number, then: readonly Instruction[]): readonly Instruction[] {
  return [[test, 0, then.length, value], ...then]
}

function unless(test: number, value: number, otherwise: Instruction): readonly Instruction[] {
  return [[test, 1, 0, value], otherwise]
}

function encode(instructions: readonly Instruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(8 * instructions.length))
  for (const [index, [code, jumpTrue, jumpFalse, value]] of instructions.entries()) {
    bytes.setUint16(8 * index, code, true)
    bytes.setUint8(8 * index + 2, jumpTrue)
    bytes.setUint8(8 * index + 3, jumpFalse)
    bytes.setUint32(8 * index + 4, value, true)
  }
  return new Uint8Array(bytes.buffer)
}
