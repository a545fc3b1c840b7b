// Row 30: ways out of the sandbox itself: namespaces, mounts, other processes, devices, settings of the kernel.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import type { Case, Need, Row } from './case.ts'
import type { Weakness } from './walls.ts'
import { sleep, type World, UNTOUCHED } from './world.ts'

type Escape = {
  readonly name: string
  readonly weakness: Weakness
  readonly needs?: readonly Need[]
  readonly command: (world: World) => string
  /** Default: it could leave `out` in the workspace. */
  readonly harmed?: (world: World) => boolean | Promise<boolean>
}

const perl = (code: string): string => `perl -e '${code}'`
/** Numbers of system calls differ by machine. */
const CALLS =
  process.arch === 'arm64'
    ? { ptrace: 117, add_key: 217, unshare: 97, mount: 40, chroot: 51 }
    : { ptrace: 101, add_key: 248, unshare: 272, mount: 165, chroot: 161 }
/** In new namespaces of users and mounts, without another program: that would lose what is gained. */
const inside = (code: string): string =>
  `${perl(`exit(syscall(${CALLS.unshare}, 0x10020000) == 0 && ${code} == 0 ? 0 : 1)`)} && touch out`
const victims = new WeakMap<World, number>()

const victim = (world: World): number => {
  const child = world.victim()
  victims.set(world, child.pid ?? 0)
  world.defer(() => child.kill('SIGCONT'))
  return child.pid ?? 0
}

function lives(world: World): boolean {
  try {
    const state = readFileSync(`/proc/${victims.get(world)}/stat`, 'utf8')
      .split(') ')[1]
      ?.charAt(0)
    return state !== 'Z' && state !== 'X' && state !== 'T'
  } catch {
    return false
  }
}

/** Dying takes a moment. */
async function fell(world: World): Promise<boolean> {
  for (let i = 0; i < 50 && !world.defended && lives(world); i++) await sleep(20)
  return !lives(world)
}

const touched = (world: World): boolean => world.text('ws-evil/canary.txt') !== UNTOUCHED

const ESCAPES: readonly Escape[] = [
  { name: 'makes a namespace of its own', weakness: 'namespaces', command: () => 'unshare -U touch out' },
  { name: 'makes a namespace for a child', weakness: 'namespaces', command: () => 'unshare -U --fork touch out' },
  {
    name: 'mounts in a namespace of its own',
    weakness: 'namespaces',
    command: () => `mkdir m; ${inside(`syscall(${CALLS.mount}, my $a = "none", my $b = "m", my $c = "tmpfs", 0, 0)`)}`,
  },
  {
    name: 'changes its root in a namespace of its own',
    weakness: 'namespaces',
    command: () => inside(`syscall(${CALLS.chroot}, my $a = "/")`),
  },
  {
    name: 'makes the root writable again',
    weakness: 'capabilities',
    command: (world) => `mount -o remount,bind,rw / && echo evil > ${world.outside}/canary.txt`,
    harmed: touched,
  },
  {
    name: 'mounts over its folder',
    weakness: 'capabilities',
    command: () => 'mkdir m; mount -t tmpfs none m && touch out',
  },
  { name: 'takes a mask off', weakness: 'capabilities', command: () => 'umount /tmp && touch out' },
  { name: 'changes its root', weakness: 'capabilities', command: () => 'chroot / true && touch out' },
  {
    name: 'kills a process of the host',
    weakness: 'processes',
    command: (world) => `kill -9 ${victim(world)}`,
    harmed: fell,
  },
  {
    name: 'stops a process of the host',
    weakness: 'processes',
    command: (world) => `kill -STOP ${victim(world)}`,
    harmed: fell,
  },
  {
    name: 'looks for a process of the host and kills it',
    weakness: 'processes',
    command: (world) => `for p in /proc/[0-9]*; do [ \${p##*/} = ${victim(world)} ] && kill -9 \${p##*/}; done`,
    harmed: fell,
  },
  {
    name: 'reads outside through the root of a process of the host',
    weakness: 'all',
    command: (world) => `echo evil > /proc/${victim(world)}/root${world.outside}/canary.txt`,
    harmed: touched,
  },
  {
    name: 'traces a process of the host',
    weakness: 'all',
    command: (world) =>
      perl(`exit(syscall(${CALLS.ptrace}, 16, ${victim(world)}, 0, 0) == 0 ? 0 : 1)`) + ' && touch out',
  },
  {
    name: 'traces a process of its own',
    weakness: 'calls',
    command: () =>
      `sleep 5 & ${perl(`exit(syscall(${CALLS.ptrace}, 16, $ARGV[0] + 0, 0, 0) == 0 ? 0 : 1)`)} $! && touch out; kill -9 $!`,
  },
  {
    name: 'keeps a key in the keyring of the user',
    weakness: 'calls',
    command: (world) =>
      perl(
        `exit(syscall(${CALLS.add_key}, my $a = "user", my $b = "k${world.mark}", my $c = "x", 1, -3) > 0 ? 0 : 1)`,
      ) + ' && touch out',
  },
  {
    name: 'opens the settings of the kernel for writing',
    weakness: 'settings',
    needs: ['root'],
    command: () => '( : >> /proc/sys/kernel/core_pattern ) && touch out',
  },
  {
    name: 'sees the devices of the host',
    weakness: 'devices',
    command: () => '{ [ -e /dev/kmsg ] || [ -e /dev/mqueue ]; } && touch out',
  },
]

const escapes: readonly Case[] = ESCAPES.map(({ name, weakness, needs = [], command, harmed }) => ({
  name,
  needs: ['bubblewrap', ...needs],
  attack: (world) => world.run(world.bash(weakness), command(world)),
  harmed: harmed ?? ((world) => world.has('ws/out')),
}))

/** Memory that the host shares by name outlives every process. */
const sharedMemory: Case = {
  name: 'leaves something in the shared memory of the host',
  needs: ['bubblewrap'],
  attack: (world) => {
    world.defer(() => rmSync(`/dev/shm/terret-${world.mark}`, { force: true }))
    return world.run(world.bash('devices'), `echo ${world.secret} > /dev/shm/terret-${world.mark}`)
  },
  harmed: (world) => existsSync(`/dev/shm/terret-${world.mark}`),
}

const keyOf = (world: World): number => Number(world.mark.slice(-9))

const segment: Case = {
  name: 'leaves a segment of System V memory on the host',
  needs: ['bubblewrap'],
  attack: (world) => {
    world.defer(() => {
      if (segments().includes(keyOf(world))) execFileSync('/bin/sh', ['-c', 'ipcrm -M "$0"', String(keyOf(world))])
    })
    return world.run(world.bash('ipc'), perl(`shmget(${keyOf(world)}, 4096, 0666 | 01000)`))
  },
  harmed: (world) => segments().includes(keyOf(world)),
}

function segments(): readonly number[] {
  const [, ...lines] = readFileSync('/proc/sysvipc/shm', 'utf8').split('\n')
  return lines.map((line) => Number(line.trim().split(/\s+/)[0]))
}

export const breakouts: Row = {
  row: 30,
  title: 'ways out of the sandbox itself',
  cases: [...escapes, sharedMemory, segment],
}
