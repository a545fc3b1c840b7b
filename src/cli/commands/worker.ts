// `terret worker`: drives each session when it becomes due, in the folder where it was started, until it is stopped. It only decides
// when; the engine decides everything else, also when to give up on a failing session.
import { dirname } from 'node:path'
import type { Call } from '../args.ts'
import { clean } from '../../view/clean.ts'
import { endOf, EXIT, isDiskFull, isReplaced, Refusal } from '../exit.ts'
import { addressIn, openMetrics } from '../serve/metrics-port.ts'
import { Crews, WIDTH } from '../state/crews.ts'
import { FULL_BYTES, roomTrouble } from '../state/disk.ts'
import { inPlace, warnOfFullDisk } from '../state/place.ts'
import { warn } from '../present/print.ts'
import { LEASE_MS } from '../state/work.ts'

export function worker(call: Call): Promise<number> {
  const metrics = call.text('metrics')
  if (metrics !== undefined) addressIn(metrics)
  return inPlace(async (place) => {
    if (place.at?.type === 'file') warnOfFullDisk(place.home)
    const { DueLoop } = await import('../../index.ts')
    const agents = agentsIn(call)
    // What this process knows is not what the store has: only the next one can go on with it.
    let replaced = false
    let metFullDisk = false
    const failed = (error: unknown): void => {
      if (isDiskFull(error)) metFullDisk = true
      if (!isReplaced(error)) return
      replaced = true
      stop()
    }
    const crews = new Crews(place, call, { leaseMs: LEASE_MS, says: true, failed })
    const idleMs = call.is('idle') ? 0 : Number.POSITIVE_INFINITY
    const { store } = place
    const report = (error: unknown): void => {
      warn(clean(endOf(error).text))
      failed(error)
    }
    const driving = (): number => crews.busy
    const port = metrics === undefined ? null : await openMetrics(place, metrics, driving)
    if (port !== null && !call.is('quiet')) warn(`Metrics are at ${port.url}`)
    const dueLoop = new DueLoop({
      store,
      width: WIDTH,
      idleMs,
      ...(agents ? { agents } : {}),
      driving,
      ...crews.looks,
      report,
    })
    // Running sessions are released, with their log complete up to here.
    const stop = (): void => {
      dueLoop.stop()
      void crews.close()
    }
    // Keeps the process alive while it waits for other processes.
    const held = setInterval(() => {}, HELD_MS)
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    try {
      await dueLoop.done.catch((error: unknown) => {
        if (!replaced) throw error
      })
    } finally {
      clearInterval(held)
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
      await crews.close()
      await port?.close()
    }
    const isStillFull = metFullDisk && roomTrouble(dirname(place.home.database), FULL_BYTES) !== null
    return replaced || isStillFull ? EXIT.store : EXIT.ok
  })
}

/** `--agents a,b`: the sessions of others are left to other workers. */
function agentsIn(call: Call): readonly string[] | null {
  const given = call.text('agents')
  if (given === undefined) return null
  const names = given.split(',').map((name) => name.trim())
  if (names.every((name) => name !== '')) return names
  throw new Refusal(EXIT.usage, '--agents must be names with commas between them, such as default,researcher.')
}

const HELD_MS = 60_000
