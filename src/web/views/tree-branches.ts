// Runs, turns and calls as one list in which each stands below what it belongs to.
import { childIdOf } from '../../view/spans/span.ts'
import { oneLine } from '../../view/clean.ts'
import { isCheckpoint } from '../../view/node-stops.ts'
import { textOf } from '../../view/text.ts'
import type { CallRow, TimelineRow, TurnRow } from '../../view/timeline.ts'

export type Branch = {
  readonly key: string
  readonly depth: 0 | 1 | 2
  readonly seq: number
  readonly name: string
  readonly state: string
  /** What it says in one line, worked out for those that are seen. */
  readonly says: () => string
  readonly took: number | null
  /** The session that it started. */
  readonly child: string | null
}

const CHARS = 200

export function branchesOf(session: string, rows: readonly TimelineRow[]): readonly Branch[] {
  const branches: Branch[] = []
  let [run, runs] = [-1, 0]
  for (const row of rows) {
    if (row.type === 'turn') {
      if (run < 0) {
        run = branches.length
        runs += 1
        const none = { depth: 0, state: 'running', says: () => '', took: null, child: null } as const
        branches.push({ key: `run ${row.run}`, seq: row.run, name: `Run ${runs}`, ...none })
      }
      branches.push(turnBranch(row))
    } else if (row.type === 'call') branches.push(callBranch(session, row))
    else if (row.type === 'settled' && run >= 0) {
      const took = row.startedAt === null ? null : row.endedAt - row.startedAt
      const open = branches[run]
      if (open) branches[run] = { ...open, state: row.outcome.type, took }
      run = -1
    }
  }
  return branches
}

function turnBranch(row: TurnRow): Branch {
  const { seq, at, endedAt, n, state } = row
  const says = (): string => (isCheckpoint(row) ? '' : oneLine(textOf(row.parts), CHARS))
  const took = endedAt === null ? null : endedAt - at
  return {
    key: `turn ${seq}`,
    depth: 1,
    seq,
    name: `Turn ${n}`,
    state: state === 'asked' ? 'running' : state,
    says,
    took,
    child: null,
  }
}

function callBranch(session: string, row: CallRow): Branch {
  const { seq, result, call, tool, args, state, startedAt, endedAt, child } = row
  const took = startedAt === null || endedAt === null ? null : endedAt - startedAt
  const born = child !== null && startedAt !== null ? childIdOf(session, call) : null
  const says = (): string => oneLine(JSON.stringify(args), CHARS)
  return { key: `call ${call}`, depth: 2, seq: result ?? seq, name: tool, state, says, took, child: born }
}
