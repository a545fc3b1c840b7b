// Do the walls stand? Tried once per process, before the first command: a sandbox that is there and does not hold is worse than none.
// It judges by what happened on the host, and by nothing the sandbox says of itself alone.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Clock } from '../../ports/system.ts'
import { allowedEnvironment, findShell, heldBack, raiseWalls, type SandboxFeatures } from './sandbox.ts'
import { type ChildEnd, type ChildOrder, runChild } from './spawn.ts'

export type Verdict =
  | { readonly type: 'sound'; readonly features: SandboxFeatures }
  | { readonly type: 'unsound'; readonly reason: string }

const verdicts = new Map<string, Promise<Verdict>>()

/** The verdict on this bubblewrap, from the first time it was asked for in this process. */
export function selfTest(bwrap: string, clock: Clock): Promise<Verdict> {
  const known = verdicts.get(bwrap)
  if (known) return known
  const verdict = tryWalls(bwrap, clock)
  verdicts.set(bwrap, verdict)
  return verdict
}

/** As `selfTest`, and asked anew. */
export async function tryWalls(bwrap: string, clock: Clock): Promise<Verdict> {
  const help = await runChild(order(bwrap, ['--help'], '/', false), clock)
  const features = {
    disableUserns: help.stdout.head.includes('--disable-userns'),
    tmpfsSize: help.stdout.head.includes('--size BYTES'),
  }
  const reason = await breach(bwrap, features, clock)
  if (reason === null) return { type: 'sound', features }
  if (!features.disableUserns) return { type: 'unsound', reason }
  // In some containers nested user namespaces cannot be forbidden. The other walls stand without it.
  const weaker = { ...features, disableUserns: false }
  return (await breach(bwrap, weaker, clock)) === null
    ? { type: 'sound', features: weaker }
    : { type: 'unsound', reason }
}

/** $1 a port of the host, $2 a file inside, and then files outside. What fails here fails as it should. */
const PROBE = `
  port=$1; inside=$2; shift 2
  echo "net=$(readlink /proc/self/ns/net)" "pid=$(readlink /proc/self/ns/pid)"
  for file; do echo broken > "$file"; done; (exec 9<>/dev/tcp/127.0.0.1/$port)
  ( : >> /proc/sys/kernel/core_pattern ) && echo sysctl=writable
  grep ^Seccomp /proc/self/status
  env; cat /proc/[0-9]*/environ; echo written > "$inside"; echo done`

/** The first wall that does not hold, or null. */
async function breach(bwrap: string, features: SandboxFeatures, clock: Clock): Promise<string | null> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-walls-')))
  const workspace = join(folder, 'in')
  const outside = placesOutside(folder).map((place) => join(place, `.${basename(folder)}`))
  const listener = await listen()
  try {
    mkdirSync(workspace)
    // The folder's name is unguessable: it is also the secret that must not be seen.
    const marker = `marker-${basename(folder)}`
    const env = allowedEnvironment({ ...process.env, TERRET_SELF_TEST: marker })
    const walls = raiseWalls({ workspace, network: false, env, masked: [], protectedPaths: [] }, features)
    const inside = join(workspace, 'written')
    const probe = [findShell(), '-c', PROBE, 'sh', String(listener.port), inside, ...outside]
    const inner = order(bwrap, [...walls.args, ...heldBack(probe)], workspace, true, env)
    const end = await runChild({ ...inner, filter: walls.filter }, clock)
    if (end.how.type !== 'exited') return `it does not start: ${startTrouble(end)}`
    const said = end.stdout.head
    if (outside.some(existsSync)) return 'a command could write outside'
    if (listener.met() || !isApart(said, 'net')) return 'a command could reach the network'
    if (!isApart(said, 'pid')) return 'a command could see other processes'
    if (said.includes(marker)) return 'a command could see the environment of the harness'
    if (!walls.filter || !isFiltered(said)) return 'a command could make every system call'
    if (said.includes('sysctl=writable')) return 'a command could change settings of the kernel'
    if (!said.includes('done') || !existsSync(inside)) return 'a command could not write into the workspace'
    return null
  } catch (error) {
    return error instanceof Error ? error.message : 'the self-test failed'
  } finally {
    listener.close()
    rmSync(folder, { recursive: true, force: true })
    for (const file of outside) rmSync(file, { force: true })
  }
}

/** The temporary folder is private inside, so what is written there proves nothing: home may lie in it, and the rest must not. */
function placesOutside(folder: string): readonly string[] {
  return [...new Set([folder, process.env['HOME'] ?? '/', process.cwd(), '/var/tmp'])]
}

/** Said by the command, but a lie would need the name of a namespace that is not ours. */
function isApart(said: string, kind: 'net' | 'pid'): boolean {
  const theirs = new RegExp(`${kind}=(${kind}:\\[\\d+\\])`).exec(said)?.[1]
  return theirs !== undefined && theirs !== readlinkSync(`/proc/self/ns/${kind}`)
}

/** One filter more than we have ourselves, where the kernel counts them. In a container we may have one too. */
function isFiltered(said: string): boolean {
  const [theirs, ours] = [said, readFileSync('/proc/self/status', 'utf8')].map(
    (status) => /^Seccomp_filters:\s*(\d+)$/m.exec(status)?.[1],
  )
  if (theirs === undefined || ours === undefined) return /^Seccomp:\s*2$/m.test(said)
  return Number(theirs) > Number(ours)
}

function startTrouble({ how, stderr }: ChildEnd): string {
  return (how.type === 'unstarted' && how.message) || stderr.head.slice(0, 300) || how.type
}

function listen(): Promise<{ readonly port: number; readonly met: () => boolean; readonly close: () => void }> {
  let met = false
  const server = createServer((socket) => {
    met = true
    socket.destroy()
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = address !== null && typeof address === 'object' ? address.port : 0
      resolve({ port, met: () => met, close: () => server.close() })
    })
  })
}

function order(file: string, args: readonly string[], cwd: string, namespaced: boolean, env = {}): ChildOrder {
  const limits = { previewBytesMax: 200_000, wholeBytesMax: 0 }
  const signal = new AbortController().signal
  return { file, args, cwd, env, namespaced, limits, signal, softMs: 10_000, hardMs: 10_000 }
}
