// Says how much disk space is left for the data folder.
import { statfsSync } from 'node:fs'
import { EXIT, CliError } from '../exit.ts'
import { terretCommand } from '../present/print.ts'

export type DiskSpace = { readonly bavail: number; readonly bsize: number; readonly blocks: number }

/** With less than this the disk counts as full. */
export const FULL_BYTES = 1024 * 1024

/** The problem and its solution if less than `leastBytes` are free; null otherwise. */
export function diskTrouble(folder: string, leastBytes: number, room: DiskSpace = statfsSync(folder)): string | null {
  const free = room.bavail * room.bsize
  // Some file systems do not report it.
  if (room.blocks === 0 || free >= leastBytes) return null
  if (free < FULL_BYTES)
    return `The disk is full where ${folder} is. Runs wait until there is room. ${describeRemoval()}`
  const mb = Math.floor(free / 1024 / 1024)
  const left = `The disk is nearly full: ${mb} MB are left where ${folder} is.`
  return `${left} Make room: runs wait until there is some. \`${terretCommand`prune --older DAYS`}\` removes old sessions.`
}

/** SQLite first writes a removal to its write-ahead log, so a removal needs room on the disk. */
function describeRemoval(): string {
  const room = 'Make room: remove other files there until 1 MB is free, or more for a large session.'
  const prune = `\`${terretCommand`prune --older DAYS`}\` then removes old sessions.`
  return `${room} ${prune} \`${terretCommand`store backup FILE`}\` writes a copy to another disk.`
}

export function removalRefusal(): CliError {
  return new CliError(EXIT.store, `The disk is full, and a removal needs room too. ${describeRemoval()} (disk_full)`)
}
