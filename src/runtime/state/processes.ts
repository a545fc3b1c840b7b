// The processes of this host, found through Linux's /proc. On other systems nothing is known of them, and leases end by the clock.
import { readFileSync, readlinkSync } from 'node:fs'
import type { ProcessId } from '../../ports/store.ts'
import type { Processes } from '../../ports/system.ts'

let self: ProcessId | null | undefined

export const systemProcesses: Processes = {
  self: () => {
    if (self === undefined) self = findOwnProcess()
    return self
  },
  isGone,
}

/**
 * A host is one boot of one kernel, and the namespaces in which its process numbers and start times count: two
 * containers may use one file, and the same number means another process in each.
 */
function findOwnProcess(): ProcessId | null {
  try {
    const { pid, started } = readProcessStat('self')
    // A /proc of another namespace numbers processes differently.
    if (pid !== process.pid) return null
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return { host: [boot, readNamespace('pid'), readNamespace('time')].join(' '), pid, started }
  } catch {
    return null
  }
}

/** Kernels before 5.6 have no time namespaces. */
function readNamespace(kind: 'pid' | 'time'): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`)
  } catch (error) {
    if (kind === 'time') return 'time:none'
    throw error
  }
}

function isGone({ pid, started }: ProcessId): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // Any other error says that the process exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
  try {
    const now = readProcessStat(pid)
    return now.started !== started || isDead(now.state)
  } catch {
    // The process ended just now, or this user may not look: the next check will tell.
    return false
  }
}

/** The process was killed, and its parent has not read its exit code yet. A process that is only stopped is alive. */
function isDead(state: string): boolean {
  return state === 'Z' || state === 'X'
}

/** Fields 1, 3 and 22. The second is a name that may contain anything, also spaces and brackets. */
function readProcessStat(pid: number | 'self'): {
  readonly pid: number
  readonly state: string
  readonly started: number
} {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const rest = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const found = { pid: Number.parseInt(text, 10), state: rest[0] ?? '', started: Number(rest[19]) }
  if (!Number.isSafeInteger(found.pid) || !Number.isSafeInteger(found.started)) throw new Error('no process numbers')
  return found
}
