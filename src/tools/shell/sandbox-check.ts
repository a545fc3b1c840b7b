// Tests once per process, before the first command, whether the sandbox holds: one that does not hold is worse than
// none. It judges by effects on the host, never only by what the sandbox reports.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Clock } from '../../ports/system.ts'
import { allowedEnvironment, findShell, supervisedCommand, buildSandbox, type SandboxFeatures } from './sandbox.ts'
import { type ChildEnd, type ChildOrder, runChild } from './child-process.ts'

export type SandboxVerdict =
  | { readonly type: 'sound'; readonly features: SandboxFeatures }
  | { readonly type: 'unsound'; readonly reason: string }

const verdicts = new Map<string, Promise<SandboxVerdict>>()

/** The verdict on this bubblewrap, from the first test in this process. */
export function testSandbox(bwrap: string, clock: Clock): Promise<SandboxVerdict> {
  const known = verdicts.get(bwrap)
  if (known) return known
  const verdict = testSandboxAnew(bwrap, clock)
  verdicts.set(bwrap, verdict)
  return verdict
}

/** As `testSandbox`, without the stored verdict. */
export async function testSandboxAnew(bwrap: string, clock: Clock): Promise<SandboxVerdict> {
  const help = await runChild(probeOrder(bwrap, ['--help'], '/', false), clock)
  const features = {
    disableUserns: help.stdout.head.includes('--disable-userns'),
    tmpfsSize: help.stdout.head.includes('--size BYTES'),
  }
  const reason = await findBreach(bwrap, features, clock)
  if (reason === null) return { type: 'sound', features }
  if (!features.disableUserns) return { type: 'unsound', reason }
  // Some containers do not allow to forbid nested user namespaces. The other protections hold without it.
  const weaker = { ...features, disableUserns: false }
  return (await findBreach(bwrap, weaker, clock)) === null
    ? { type: 'sound', features: weaker }
    : { type: 'unsound', reason }
}

/**
 * $1 is a port of the host, $2 a file inside; the others are files outside. Everything except the write inside should
 * fail.
 */
const PROBE = `
  port=$1; inside=$2; shift 2
  echo "net=$(readlink /proc/self/ns/net)" "pid=$(readlink /proc/self/ns/pid)"
  for file; do echo broken > "$file"; done; (exec 9<>/dev/tcp/127.0.0.1/$port)
  ( : >> /proc/sys/kernel/core_pattern ) && echo sysctl=writable
  grep ^Seccomp /proc/self/status
  env; cat /proc/[0-9]*/environ; echo written > "$inside"; echo done`

/** Describes the first protection that does not hold; null if all do. */
async function findBreach(bwrap: string, features: SandboxFeatures, clock: Clock): Promise<string | null> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-walls-')))
  const workspace = join(folder, 'in')
  const outside = placesOutside(folder).map((place) => join(place, `.${basename(folder)}`))
  const listener = await startListener()
  try {
    mkdirSync(workspace)
    // The folder's name cannot be guessed: it is also the secret that must stay hidden.
    const marker = `marker-${basename(folder)}`
    const env = allowedEnvironment({ ...process.env, TERRET_SELF_TEST: marker })
    const walls = buildSandbox({ workspace, network: false, env, masked: [], protectedPaths: [] }, features)
    const inside = join(workspace, 'written')
    const probe = [findShell(), '-c', PROBE, 'sh', String(listener.port), inside, ...outside]
    const inner = probeOrder(bwrap, [...walls.args, ...supervisedCommand(probe)], workspace, true, env)
    const end = await runChild({ ...inner, filter: walls.filter }, clock)
    if (end.how.type !== 'exited') return `it does not start: ${startTrouble(end)}`
    const said = end.stdout.head
    if (outside.some(existsSync)) return 'a command could write outside'
    if (listener.met() || !isOwnNamespace(said, 'net')) return 'a command could reach the network'
    if (!isOwnNamespace(said, 'pid')) return 'a command could see other processes'
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

/**
 * Places to test. Inside, the temporary folder is private, so a write there proves nothing; the home folder may lie in
 * it, the others must not.
 */
function placesOutside(folder: string): readonly string[] {
  return [...new Set([folder, process.env['HOME'] ?? '/', process.cwd(), '/var/tmp'])]
}

/** The command itself reports the namespace, but a lie would have to name another namespace than ours. */
function isOwnNamespace(said: string, kind: 'net' | 'pid'): boolean {
  const theirs = new RegExp(`${kind}=(${kind}:\\[\\d+\\])`).exec(said)?.[1]
  return theirs !== undefined && theirs !== readlinkSync(`/proc/self/ns/${kind}`)
}

/** There must be one filter more than our own, where the kernel counts them. In a container we may have one too. */
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

function startListener(): Promise<{ readonly port: number; readonly met: () => boolean; readonly close: () => void }> {
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

function probeOrder(file: string, args: readonly string[], cwd: string, namespaced: boolean, env = {}): ChildOrder {
  const limits = { previewBytesMax: 200_000, wholeBytesMax: 0 }
  const signal = new AbortController().signal
  return { file, args, cwd, env, namespaced, limits, signal, softMs: 10_000, hardMs: 10_000 }
}
