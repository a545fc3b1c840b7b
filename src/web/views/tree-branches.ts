// Runs, turns and calls as a flat list with depths.
import { childIdOf } from '../../view/spans/span.ts'
import { oneLine } from '../../view/clean.ts'
import { isCheckpoint } from '../../view/node-stops.ts'
import { textOf } from '../../view/shown-text.ts'
import type { CallRow, TimelineRow, TurnRow } from '../../view/timeline.ts'

export type TreeBranch = {
  readonly key: string
  readonly depth: 0 | 1 | 2
  readonly seq: number
  readonly name: string
  readonly state: string
  /** Its text on one line, computed only for visible rows. */
  readonly says: () => string
  readonly took: number | null
  /** The child session that the call started. */
  readonly child: string | null
}

const CHARS = 200

export function buildTreeBranches(session: string, rows: readonly TimelineRow[]): readonly TreeBranch[] {
  const branches: TreeBranch[] = []
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

function turnBranch(row: TurnRow): TreeBranch {
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

function callBranch(session: string, row: CallRow): TreeBranch {
  const { seq, result, call, tool, args, state, startedAt, endedAt, child } = row
  const took = startedAt === null || endedAt === null ? null : endedAt - startedAt
  const born = child !== null && startedAt !== null ? childIdOf(session, call) : null
  const says = (): string => oneLine(JSON.stringify(args), CHARS)
  return { key: `call ${call}`, depth: 2, seq: result ?? seq, name: tool, state, says, took, child: born }
}
