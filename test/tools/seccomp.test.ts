// The filter of system calls: what it decides for both processors, by running its program here, and what the kernel makes of it.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { filterFor } from '../../src/tools/seccomp.ts'
import { Box, noBubblewrap } from './box.ts'

type Call = { readonly number: number; readonly args?: readonly number[]; readonly audit?: number }

const KILL = 0x80000000
const ALLOW = 0x7fff0000
const failing = (errno: number): number => 0x00050000 + errno

/** Classic BPF, as far as the kernel's manual says it is used for this: load, compare and jump, return. */
function decide(program: Uint8Array, { number, args = [], audit = 0 }: Call): number {
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, number, true)
  data.setUint32(4, audit, true)
  for (const [index, arg] of args.entries()) data.setBigUint64(16 + 8 * index, BigInt(arg), true)
  const code = new DataView(program.buffer)
  let loaded = 0
  for (let at = 0; at < program.length / 8; at++) {
    const value = code.getUint32(8 * at + 4, true)
    const jumps = [code.getUint8(8 * at + 2), code.getUint8(8 * at + 3)] as const
    const operation = code.getUint16(8 * at, true)
    if (operation === 0x06) return value
    if (operation === 0x20) loaded = data.getUint32(value, true)
    else if (operation === 0x15) at += jumps[loaded === value ? 0 : 1]
    else if (operation === 0x35) at += jumps[loaded >= value ? 0 : 1]
    else if (operation === 0x45) at += jumps[(loaded & value) === 0 ? 1 : 0]
    else throw new Error(`operation ${operation} is not known`)
  }
  throw new Error('the program ends without a decision')
}

// From the tables of the kernel, by name.
// biome-ignore format: tables
const processors = [
  ['x64', 0xc000003e, { read: 0, ioctl: 16, socket: 41, socketpair: 53, clone: 56, fork: 57, ptrace: 101, add_key: 248,
    request_key: 249, keyctl: 250, unshare: 272, perf_event_open: 298, setns: 308, process_vm_readv: 310,
    process_vm_writev: 311, bpf: 321, userfaultfd: 323, clone3: 435 }],
  ['arm64', 0xc00000b7, { read: 63, ioctl: 29, socket: 198, socketpair: 199, clone: 220, fork: 1079, ptrace: 117, add_key: 217,
    request_key: 218, keyctl: 219, unshare: 97, perf_event_open: 241, setns: 268, process_vm_readv: 270,
    process_vm_writev: 271, bpf: 280, userfaultfd: 282, clone3: 435 }],
] as const

describe.each(processors)('the filter for %s', (arch, audit, numbers) => {
  const program = filterFor(arch) ?? new Uint8Array()
  const verdict = (number: number, ...args: readonly number[]): number => decide(program, { number, args, audit })

  it('B-BASH-22: kills whoever calls in the manner of another processor', () => {
    const others = [0, 0x40000003, 0xc000003e, 0xc00000b7].filter((other) => other !== audit)
    expect(others.map((other) => decide(program, { number: numbers.read, audit: other }))).toEqual([KILL, KILL, KILL])
    expect(verdict(0x40000000 + numbers.read)).toBe(KILL)
    expect([numbers.read, numbers.fork].map((number) => verdict(number))).toEqual([ALLOW, ALLOW])
  })

  it('B-BASH-22: lets only local, internet and route sockets through, whatever the upper half of the number says', () => {
    for (const number of [numbers.socket, numbers.socketpair]) {
      const open = Array.from({ length: 64 }, (_, family) => family).filter(
        (family) => verdict(number, family) === ALLOW,
      )
      expect(open).toEqual([1, 2, 10, 16])
      const links = Array.from({ length: 32 }, (_, kind) => kind).filter(
        (kind) => verdict(number, 16, 3, kind) === ALLOW,
      )
      expect(links).toEqual([0])
    }
    expect(verdict(numbers.socket, 40)).toBe(failing(97))
    expect(verdict(numbers.socket, 2 ** 32 + 40)).toBe(failing(97))
  })

  it('B-BASH-22: refuses new user namespaces, typing into terminals and what looks into others', () => {
    const NEWUSER = 0x10000000
    expect([verdict(numbers.clone, NEWUSER + 17), verdict(numbers.unshare, NEWUSER)]).toEqual([failing(1), failing(1)])
    expect([verdict(numbers.clone, 0x3d0f00), verdict(numbers.unshare, 0x400)]).toEqual([ALLOW, ALLOW])
    expect(verdict(numbers.clone3)).toBe(failing(38))
    expect([0x5412, 0x541c, 0x5401].map((what) => verdict(numbers.ioctl, 0, what))).toEqual([
      failing(1),
      failing(1),
      ALLOW,
    ])
    const { ptrace, add_key, request_key, keyctl, bpf, perf_event_open, userfaultfd, setns } = numbers
    const seeing = [numbers.process_vm_readv, numbers.process_vm_writev, 425, 426, 427, 438]
    const refused = [ptrace, add_key, request_key, keyctl, bpf, perf_event_open, userfaultfd, setns, ...seeing]
    expect(refused.map((number) => verdict(number))).toEqual(refused.map(() => failing(1)))
  })
})

describe('a confined command (needs bubblewrap)', () => {
  let box: Box
  beforeEach(() => {
    box = new Box()
  })
  afterEach(() => box.close())
  const [, , numbers] = processors.find(([arch]) => arch === process.arch) ?? processors[0]
  const noFilter = noBubblewrap || filterFor() === null

  it('B-BASH-22: has no filter on a processor nobody wrote it for', () => {
    expect(filterFor('riscv64')).toBeNull()
  })

  it.skipIf(noFilter)('B-BASH-22: is told by the kernel that it may not', async () => {
    const sockets = `for my $f (0..63) { print "family $f\\n" if socket(my $s, $f, $f == 16 ? 3 : 1, 0) }
      for my $k (0..31) { print "link $k\\n" if socket(my $s, 16, 3, $k) }`
    const calls = ['ptrace', 'keyctl', 'add_key', 'bpf', 'perf_event_open', 'userfaultfd', 'setns'] as const
    const others = calls.map(
      (name) => `syscall(${numbers[name]}, 0, 0, 0, 0, 0) < 0 and print "${name} ", $! + 0, "\\n";`,
    )
    const unshare = `syscall(${numbers.unshare}, 0x10000000) < 0 and print "unshare ", $! + 0, "\\n";`
    box.write('ws/probe.pl', `${sockets}\n${others.join('\n')}\n${unshare}`)
    // Outside the very same probe opens more: it can succeed.
    const outside = await box.run('perl probe.pl', {}, { sandbox: { type: 'none', reason: 'to compare' } })
    expect(outside.stdout).toContain('link 15\n')
    const said = (await box.run('perl probe.pl')).stdout.trim().split('\n')
    expect(said.filter((line) => /^(family|link)/.test(line) && !/^family (1|2|10|16)$/.test(line))).toEqual(['link 0'])
    expect(said.slice(-8)).toEqual([...calls, 'unshare'].map((name) => `${name} 1`))
  })

  it.skipIf(noFilter)('B-BASH-22: still runs git, node with threads and children, and python', async () => {
    const node = `const { Worker } = require('worker_threads'); require('os').networkInterfaces()
      require('net').createServer().listen(0, function () { this.close() })
      new Worker('1', { eval: true }).on('exit', () => require('child_process').execSync('echo child', { stdio: 'inherit' }))`
    box.write('ws/run.cjs', node)
    const python = `import subprocess, threading; t = threading.Thread(target=lambda: subprocess.run(["true"])); t.start(); t.join()`
    const result = await box.run(`set -e
      git init -q . && echo x > x && git add x
      git -c user.name=n -c user.email=e@x -c commit.gpgsign=false commit -q -m first && git log --format=%s
      ${process.execPath} run.cjs
      ! command -v python3 >/dev/null || python3 -c '${python}'; echo end`)
    expect(result).toMatchObject({ stdout: 'first\nchild\nend\n', exit_code: 0 })
  })
})
