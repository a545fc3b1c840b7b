// The filter of system calls: what it decides for both processors, by running its program here, and what the kernel makes of it.
import { spawn } from 'node:child_process'
import { linkSync, renameSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findSandbox } from '../../src/tools/shell/sandbox.ts'
import { systemCallFilter } from '../../src/tools/shell/seccomp.ts'
import { Box, noBubblewrap } from './box.ts'
import { until } from '../until.ts'

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
    else if (operation === 0x54) loaded &= value
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
  const program = systemCallFilter(arch) ?? new Uint8Array()
  const local = systemCallFilter(arch, true) ?? new Uint8Array()
  const verdict = (number: number, ...args: readonly number[]): number => decide(program, { number, args, audit })
  const families = Array.from({ length: 64 }, (_, family) => family)

  it('B-BASH-22: kills a process that makes system calls of another architecture', () => {
    const others = [0, 0x40000003, 0xc000003e, 0xc00000b7].filter((other) => other !== audit)
    expect(others.map((other) => decide(program, { number: numbers.read, audit: other }))).toEqual([KILL, KILL, KILL])
    expect(verdict(0x40000000 + numbers.read)).toBe(KILL)
    expect([numbers.read, numbers.fork].map((number) => verdict(number))).toEqual([ALLOW, ALLOW])
  })

  it('B-BASH-22: lets only internet and route sockets through, whatever the upper half of the number says', () => {
    expect(families.filter((family) => verdict(numbers.socket, family) === ALLOW)).toEqual([2, 10, 16])
    const kinds = Array.from({ length: 32 }, (_, kind) => kind)
    expect(kinds.filter((kind) => verdict(numbers.socket, 16, 3, kind) === ALLOW)).toEqual([0])
    expect(verdict(numbers.socket, 40)).toBe(failing(97))
    expect(verdict(numbers.socket, 2 ** 32 + 40)).toBe(failing(97))
    expect(verdict(numbers.socket, 2 ** 32 + 1)).toBe(failing(97))
  })

  it('B-SANDBOX-1: refuses unix sockets, and of pairs those that can send to others, unless they are asked for', () => {
    const [NONBLOCK, CLOEXEC] = [0o4000, 0o2000000]
    const types = Array.from({ length: 16 }, (_, type) => type)
    for (const flags of [0, NONBLOCK, CLOEXEC, NONBLOCK + CLOEXEC]) {
      const paired = types.filter((type) => verdict(numbers.socketpair, 1, type + flags) === ALLOW)
      expect([flags, paired]).toEqual([flags, [1, 5]])
    }
    expect(families.filter((family) => verdict(numbers.socketpair, family, 1) === ALLOW)).toEqual([1])
    const opened = (number: number) =>
      families.filter((family) => decide(local, { number, args: [family, 2], audit }) === ALLOW)
    expect(opened(numbers.socket)).toEqual([1, 2, 10, 16])
    expect(opened(numbers.socketpair)).toEqual([1, 16])
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
  const noFilter = noBubblewrap || systemCallFilter() === null

  it('B-BASH-22: has no filter on an unsupported processor', () => {
    expect(systemCallFilter('riscv64')).toBeNull()
  })

  it('B-SANDBOX-2: on a processor without a filter is not confined, so a person is asked for every call', () => {
    const found = findSandbox(box.workspace, process.env, 'linux', 'riscv64')
    expect(found).toEqual({ type: 'none', reason: 'there is no filter of system calls for riscv64 yet' })
  })

  it.skipIf(noFilter)('B-SANDBOX-3: reaches no socket of the host, however it is named or was bound', async () => {
    const places = ['relative.sock', 'first.sock', 'odd \n name.sock'].map((name) => join(box.outside, name))
    const [, first = ''] = places
    const [renamed, linked] = ['renamed.sock', 'linked.sock'].map((name) => join(box.outside, name)) as [string, string]
    let met = 0
    const here = process.cwd()
    process.chdir(box.outside)
    const servers = ['relative.sock', ...places.slice(1)].map((path) =>
      createServer((socket) => socket.destroy(void met++)).listen(path),
    )
    await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))))
    process.chdir(here)
    linkSync(first, linked)
    renameSync(first, renamed)
    try {
      const asked = [places[0], places[2], linked, renamed]
      const connect = `for (const path of ${JSON.stringify(asked)}) require('net').connect(path).on('error', () => {})`
      const probe = `${process.execPath} ${box.write('ws/probe.cjs', connect)}`
      await box.run(probe)
      await box.run(probe, { network: true })
      expect(met).toBe(0)
      await box.run(probe, {}, { localSockets: true })
      await until(() => expect(met).toBe(4))
    } finally {
      for (const server of servers) server.close()
    }
  })

  it.skipIf(noFilter)('B-SANDBOX-3: cannot send to a socket of the host with one of a pair', async () => {
    const send = (type: string) =>
      `perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, ${type}, 0) or exit 3; exit(send($a, "x", 0, pack_sockaddr_un($ARGV[0])) ? 0 : 4)' ${box.outside}/s`
    const daemon = spawn('/usr/bin/perl', [
      '-MSocket',
      '-e',
      'socket(my $s, AF_UNIX, SOCK_DGRAM, 0); bind($s, pack_sockaddr_un($ARGV[0])); $| = 1; print "up"; sleep 60',
      `${box.outside}/s`,
    ])
    try {
      await new Promise((resolve) => daemon.stdout.once('data', resolve))
      expect((await box.run(send('SOCK_DGRAM'))).exit_code).toBe(3)
      expect((await box.run(send('SOCK_RAW'))).exit_code).toBe(3)
      expect((await box.run(send('SOCK_STREAM'))).exit_code).toBe(4)
      expect((await box.run(send('SOCK_SEQPACKET'))).exit_code).not.toBe(3)
      expect((await box.run(send('SOCK_DGRAM'), {}, { localSockets: true })).exit_code).toBe(0)
    } finally {
      daemon.kill('SIGKILL')
    }
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
    expect(said.filter((line) => /^(family|link)/.test(line) && !/^family (2|10|16)$/.test(line))).toEqual(['link 0'])
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

  it.skipIf(noFilter)(
    'B-SANDBOX-4: still builds: npm, make with jobs, pools of processes, messages to a child',
    async () => {
      box.write('ws/lib/package.json', '{"name":"lib","version":"1.0.0","main":"index.js"}')
      box.write('ws/lib/index.js', 'console.log("lib")')
      box.write(
        'ws/package.json',
        '{"name":"app","dependencies":{"lib":"file:./lib"},"scripts":{"go":"node -r lib -e 1"}}',
      )
      box.write('ws/Makefile', 'all: a b\na b:\n\t@echo $@ > made-$@\n')
      box.write(
        'ws/fork.cjs',
        `if (process.send) process.send('child'); else require('child_process').fork(__filename).on('message', (text) => console.log(text))`,
      )
      box.write(
        'ws/pool.py',
        'import multiprocessing as m\nif __name__ == "__main__":\n  m.set_start_method("spawn")\n  print(m.Pool(2).map(abs, [-1, -2]))\n',
      )
      const result = await box.run(
        `set -e; export npm_config_cache=/tmp/npm
      npm install --offline --no-audit --no-fund >/dev/null && npm ci --offline --no-audit --no-fund >/dev/null && npm run -s go
      node fork.cjs
      ! command -v make >/dev/null || { make -s -j2; cat made-a made-b; } | tr -d '\\nab'
      ! command -v python3 >/dev/null || python3 pool.py | tr -d '[1, 2]\\n'; echo end`,
        { soft_timeout_ms: 60_000 },
      )
      expect(result).toMatchObject({ stdout: 'lib\nchild\nend\n', exit_code: 0 })
    },
    60_000,
  )
})
