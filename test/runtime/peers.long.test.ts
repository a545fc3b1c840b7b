// Processes of one host on one file: when one is killed, another goes on with its sessions at once. Real processes, really killed; the
// script they run is child-wake.ts. What a store does with a lease that is ended is in the contract (contract/store-lease.ts).
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { Peers } from '../../src/runtime/loop/dead-workers.ts'
import { systemProcesses } from '../../src/runtime/state/processes.ts'
import type { ProcessId } from '../../src/ports/store.ts'
import { memory, scripted, type CompleteStore } from '../../src/index.ts'
import { create, StillClock, TTL } from '../contract/fixture.ts'
import { makeFolder, open } from '../stores/folder.ts'
import { make } from './scene.ts'
import { asleep, quiet, say } from './wake-stage.ts'
import { storeWith } from '../../sim/store-with.ts'
import { until } from '../until.ts'

const SCRIPT = fileURLToPath(new URL('../../.build/test/runtime/child-wake.js', import.meta.url))
/** What is promised, and what a busy machine takes beside it. A lease lasts three times as long. */
const SOON_MS = 10_000
/** How long a stopped process is watched. */
const WATCHED_MS = 6_000
/** A process namespace of its own, where this user may make one. */
const APART = ['unshare', '-Urpf', '--kill-child', '--mount-proc'] as const
const [command, ...flags] = APART
const unshared = spawnSync(command, [...flags, 'true']).status === 0

type Place = {
  readonly store: CompleteStore
  readonly journal: () => string
  readonly start: (...before: readonly string[]) => ChildProcess
}

function place(): Place {
  const folder = makeFolder()
  const [file, journal] = [join(folder, 'terret.db'), join(folder, 'journal')]
  writeFileSync(journal, '')
  const start: Place['start'] = (...before) => {
    const [command, ...args] = [...before, process.execPath, SCRIPT, file, journal, 'well', '30000']
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
    onTestFinished(() => {
      child.kill('SIGCONT')
      child.kill('SIGKILL')
    })
    return child
  }
  return { store: open(file), journal: () => readFileSync(journal, 'utf8'), start }
}

/** A session whose model is being asked by that process, which will not get an answer. */
async function hang({ store, journal, start }: Place, ...before: readonly string[]): Promise<ChildProcess> {
  await asleep(store, 's', [])
  await say(store, 's', 'hang')
  const child = start(...before)
  await vi.waitFor(() => expect(journal()).toBe('hung\n'), 50_000)
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function completed(store: CompleteStore, timeout = SOON_MS): Promise<void> {
  await vi.waitFor(async () => expect(await store.card('s')).toMatchObject({ outcome: 'completed' }), {
    timeout,
    interval: 20,
  })
}

function self(): ProcessId {
  const found = systemProcesses.self()
  if (!found) throw new Error('this system does not tell of its processes')
  return found
}

function startOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19])
}

describe.skipIf(process.platform !== 'linux')('a worker whose process is gone', () => {
  it('B-WAKE-33: its sessions go on in a worker of this host that waits, soon, though the lease is of 30 s', async () => {
    const here = place()
    const first = await hang(here)
    const second = here.start()
    await once(second.stdout as NodeJS.ReadableStream, 'data')
    await kill(first)
    await completed(here.store)
  }, 120_000)

  it('B-WAKE-33: its sessions go on in a worker that starts, and in a caller that asks for the session', async () => {
    const here = place()
    await kill(await hang(here))
    const begun = performance.now()
    const harness = make(scripted(['here I am']), { store: here.store, program: 'unnamed' })
    expect(await harness.session('s').run()).toMatchObject({ status: 'completed', text: 'here I am' })
    expect(performance.now() - begun).toBeLessThan(SOON_MS)
    const again = place()
    await kill(await hang(again))
    again.start()
    await completed(again.store)
  }, 120_000)

  it('B-WAKE-33: one that was killed and that its parent has not collected is gone', async () => {
    const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] })
    onTestFinished(() => void parent.kill('SIGKILL'))
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const pid = Number(line)
    const child = { host: self().host, pid, started: startOf(pid) }
    expect(systemProcesses.isGone(child)).toBe(false)
    // Until the shell has become the parent that does not collect, it would.
    await until(() => expect(readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n'))
    process.kill(pid, 'SIGKILL')
    await until(() => expect(systemProcesses.isGone(child)).toBe(true))
    expect(execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })).toContain('Z')
  })

  it('B-WAKE-34: one that is stopped keeps its sessions until it is killed', async () => {
    const here = place()
    const first = await hang(here)
    first.kill('SIGSTOP')
    here.start()
    const harness = make(scripted(['never asked']), { store: here.store })
    const end = performance.now() + WATCHED_MS
    while (performance.now() < end) {
      expect(await harness.work({ session: 's' })).toEqual({ type: 'contended' })
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    expect(await here.store.card('s')).toMatchObject({ status: 'running', outcome: null })
    await kill(first)
    await completed(here.store)
  }, 120_000)

  it('B-WAKE-34: a process that has the number of a dead one is told from it by its start time', async () => {
    const { store } = place()
    const harness = make(scripted(['yes']), { store })
    const { host, pid, started } = { ...self(), pid: process.ppid, started: startOf(process.ppid) }
    for (const [id, process] of [
      ['alive', { host, pid, started }],
      ['dead', { host, pid, started: started - 1 }],
    ] as const) {
      await asleep(store, id, [])
      await store.claim(id, `worker of ${id}`, TTL, process)
    }
    expect(await harness.work({ session: 'dead' })).toMatchObject({ type: 'rested' })
    expect(await harness.work({ session: 'alive' })).toEqual({ type: 'contended' })
  })

  it('B-WAKE-35: a process of another host or boot is not judged', async () => {
    const { store } = place()
    const harness = make(scripted(['no']), { store })
    await asleep(store, 's', [])
    const [boot = '', ...namespaces] = self().host.split(' ')
    expect(boot).toBe(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
    await store.claim('s', 'elsewhere', TTL, { ...self(), host: ['boot', ...namespaces].join(' '), started: 1 })
    expect(await harness.work({ session: 's' })).toEqual({ type: 'contended' })
  })

  it.skipIf(!unshared)(
    'B-WAKE-35: a process of another process namespace is not judged, though its number is that of another process here',
    async () => {
      const here = place()
      await hang(here, ...APART)
      const harness = make(scripted(['no']), { store: here.store })
      expect(await harness.work({ session: 's' })).toEqual({ type: 'contended' })
      expect(await here.store.holders(self().host)).toEqual([])
    },
    60_000,
  )

  it('B-WAKE-37: what it held is undone, forked or removed without waiting for its lease', async () => {
    const { store } = place()
    const harness = make(scripted(['one', 'two']), { store })
    const session = await harness.open({ id: 's' })
    await session.run('hello')
    await harness.close()
    const dead = { ...self(), started: 1 }
    const later = make(scripted(['three']), { store })
    await store.claim('s', 'worker that is gone', TTL, dead)
    await later.session('s').undo()
    await store.claim('s', 'another that is gone', TTL, dead)
    expect(await later.remove('s')).toMatchObject([{ session: 's' }])
  })
})

describe('a look for dead processes', () => {
  const gone = { host: 'h', pid: 1, started: 1 }
  const here = { host: 'h', pid: 2, started: 2 }
  const processes = { self: () => here, isGone: ({ pid }: ProcessId) => pid === gone.pid }
  let looks = 0
  let clock = new StillClock()
  let store: CompleteStore = memory()
  beforeEach(() => {
    looks = 0
    clock = new StillClock()
    const inner = memory({ clock })
    const holders: CompleteStore['holders'] = (host) => {
      looks += 1
      return inner.holders(host)
    }
    store = storeWith(inner, { reach: 'machine', holders })
  })

  it('B-WAKE-36: is one read, at most once a second, and wanted again only while another process of the host holds a session', async () => {
    const peers = new Peers({ store, clock, processes, leaseMs: TTL })
    expect(await peers.look()).toEqual({ ended: 0, again: Number.POSITIVE_INFINITY })
    for (const id of ['own', 'dead', 'living']) await create(store, id)
    await store.claim('own', 'w2', TTL, here)
    // Asked too early: it says when it will look.
    expect(await peers.look()).toEqual({ ended: 0, again: clock.time + 1_000 })
    expect(looks).toBe(1)
    clock.advance(1_000)
    expect(await peers.look()).toEqual({ ended: 0, again: Number.POSITIVE_INFINITY })
    await store.claim('dead', 'w1', TTL, gone)
    await store.claim('living', 'w3', TTL, { ...here, pid: 3 })
    clock.advance(1_000)
    expect(await peers.look()).toEqual({ ended: 1, again: clock.time + 1_000 })
    expect(looks).toBe(3)
  })

  it('B-WAKE-36: is not made for a turn, and not at all by a store that no other process uses', async () => {
    const turns = Array.from({ length: 20 }, () => ({ calls: [{ tool: 'none' }] }))
    const harness = make(scripted([...turns, 'done']), { store, limits: { toolRetries: 30 } })
    await harness.run('hello')
    expect(looks).toBe(0)
    const alone = memory({ clock })
    expect(await new Peers({ store: alone, clock, processes }).look()).toMatchObject({ ended: 0 })
    expect(await new Peers({ store, clock }).look()).toMatchObject({ ended: 0 })
    expect(looks).toBe(0)
  })

  it('B-WAKE-35: is not made where the system does not tell of its processes', async () => {
    await create(store, 's')
    await store.claim('s', 'w1', TTL, gone)
    const silent = { ...processes, self: () => null }
    expect(await new Peers({ store, clock, processes: silent }).look()).toMatchObject({ ended: 0 })
    await quiet()
    expect(await store.claim('s', 'w2', TTL)).toBeNull()
  })
})
