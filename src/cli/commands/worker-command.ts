// `terret worker`: drives each session when it becomes due, in the folder where it was started, until it is stopped. It only decides
// when; the engine decides everything else, also when to give up on a failing session.
import { dirname } from 'node:path'
import type { CommandArgs } from '../args.ts'
import { clean } from '../../view/clean.ts'
import { exitForError, EXIT, isDiskFull, isStoreReplaced, CliError } from '../exit.ts'
import { parseMetricsAddress, openMetrics } from '../serve/metrics-port.ts'
import { DueDriver, WIDTH } from '../state/due-driver.ts'
import { FULL_BYTES, diskTrouble } from '../state/disk-space.ts'
import { withStore, warnOfFullDisk } from '../state/command-context.ts'
import { warn } from '../present/print.ts'
import { LEASE_MS } from '../state/drive-session.ts'

export function workerCommand(call: CommandArgs): Promise<number> {
  const metrics = call.text('metrics')
  if (metrics !== undefined) parseMetricsAddress(metrics)
  return withStore(async (place) => {
    if (place.at?.type === 'file') warnOfFullDisk(place.home)
    const { DueLoop } = await import('../../worker.ts')
    const agents = parseAgentNames(call)
    // The store was replaced, so this process has the wrong data. Only a new process can go on.
    let replaced = false
    let metFullDisk = false
    const failed = (error: unknown): void => {
      if (isDiskFull(error)) metFullDisk = true
      if (!isStoreReplaced(error)) return
      replaced = true
      stop()
    }
    const idleMs = call.is('idle') ? 0 : Number.POSITIVE_INFINITY
    const { store } = place
    const report = (error: unknown): void => {
      warn(clean(exitForError(error).text))
      failed(error)
    }
    // No harness is opened before the first look.
    const opened = metrics === undefined ? {} : { opened: (harness: object) => port?.listenTo(harness) }
    const crews = new DueDriver(place, call, { leaseMs: LEASE_MS, says: true, failed, ...opened })
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
    // Running sessions are released. Their logs are complete up to this point.
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
    const isStillFull = metFullDisk && diskTrouble(dirname(place.home.database), FULL_BYTES) !== null
    return replaced || isStillFull ? EXIT.store : EXIT.ok
  })
}

/** `--agents a,b`: sessions of all other agents are left to other workers. */
function parseAgentNames(call: CommandArgs): readonly string[] | null {
  const given = call.text('agents')
  if (given === undefined) return null
  const names = given.split(',').map((name) => name.trim())
  if (names.every((name) => name !== '')) return names
  throw new CliError(EXIT.usage, '--agents must be names with commas between them, such as default,researcher.')
}

const HELD_MS = 60_000
