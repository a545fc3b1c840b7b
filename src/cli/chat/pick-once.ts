// One list at a terminal outside of a chat: it is opened, a person chooses, and the terminal is as it was before.
import { NOTHING_KNOWN } from './edit-line.ts'
import type { PickOptions } from './picker.ts'
import { openTerminal } from './terminal-input.ts'

/** True if a person can choose from a list: both ends are a terminal. */
export function canPick(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true
}

/** Null: the person left it. */
export async function pickOnce(options: PickOptions): Promise<string | null> {
  const left = new AbortController()
  const leave = (): void => left.abort()
  const ears = {
    entered: () => {},
    interrupt: leave,
    stop: () => false,
    nextMode: () => {},
    expand: () => {},
    background: () => false,
    unqueue: () => Promise.resolve(null),
    end: leave,
    gone: leave,
  }
  const sources = { commands: () => [], files: () => [] }
  const terminal = openTerminal({ known: NOTHING_KNOWN, sources, ears, env: process.env, vim: false })
  try {
    return await terminal.pick(options, left.signal)
  } finally {
    terminal.close()
  }
}
