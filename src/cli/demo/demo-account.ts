// The account at the end of the demo. Every line is checked when it is written: against the log, the file and the
// processes.
import { hash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { countNoun } from '../../view/shown-text.ts'
import { usdText } from '../../view/usd.ts'
import type { LogReader } from './log-reader.ts'

/** The identity of a file, and the time of its last write. */
type FileIdentity = { readonly inode: number; readonly writtenMs: number }
/** A worker that was killed. `file`: the report's file after the death of the worker, if it had the right bytes. */
export type Kill = { readonly node: string; readonly pid: number; readonly file: FileIdentity | null }

export type DemoAccount = {
  readonly log: LogReader
  readonly kills: readonly Kill[]
  readonly pids: readonly number[]
  /** The cost of the session, in millionths of a dollar. */
  readonly cost: number
}

/** Null unless the file holds exactly these bytes. */
export function findWrittenFile(path: string, sha256: string): FileIdentity | null {
  try {
    const { ino, mtimeMs } = statSync(path)
    return hash('sha256', readFileSync(path)) === sha256 ? { inode: ino, writtenMs: mtimeMs } : null
  } catch {
    return null
  }
}

export function accountLines({ log, kills, pids, cost }: DemoAccount): readonly string[] {
  const started =
    pids.length === 0 ? 'no worker process' : `${countNoun(pids.length, 'worker')}, none left: ${pids.join(', ')}`
  const killed = kills.map(({ node, file }) => (file ? `${node}, between write and commit` : node)).join('; ')
  return [
    `Processes  ${started}`,
    `Kills      ${kills.length} real SIGKILL${killed === '' ? '' : `: ${killed}`}`,
    `Nodes      ${nodesText(log)}`,
    `Bytes      ${bytesText(log, kills)}`,
    `Money      ${usdText(cost)}, ${countNoun(log.tokens, 'token')}: offline, without a key`,
  ]
}

function nodesText(log: LogReader): string {
  const { stops } = log
  const results = log.events.flatMap((event) => (event.type === 'agent.tool_result' ? [event.call] : []))
  const once = stops.every(({ call }) => results.filter((each) => each === call).length === 1)
  const again = stops.filter(({ attempts }) => attempts > 1).length
  const what = once
    ? `${stops.length}, each with one result in the log`
    : `${stops.length}, and not each has one result`
  return again === 0 ? what : `${what}; ${again} were begun twice`
}

function bytesText(log: LogReader, kills: readonly Kill[]): string {
  const { proposal, written: said } = log.state
  if (!proposal) return '0 written'
  const now = findWrittenFile(proposal.path, proposal.sha256)
  if (!said)
    return now === null ? '0 written: it was not allowed' : `${proposal.bytes} in the file, and the log does not say so`
  if (now === null) return 'the file is not what was approved: somebody changed it since'
  const before = kills.findLast(({ file }) => file !== null)?.file
  if (!before) return `${proposal.bytes}, written once; the file has the SHA-256 that was approved`
  const isSame = before.inode === now.inode && before.writtenMs === now.writtenMs
  return isSame && !said.changed
    ? `${proposal.bytes} written once: file as before the kill, SHA-256 as approved`
    : `${proposal.bytes}, and written again after the kill`
}
