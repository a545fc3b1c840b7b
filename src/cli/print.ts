// Lines to standard output and to standard error: answers go to the first, everything about them to the second.
import { basename, isAbsolute, relative } from 'node:path'
import { safeJson } from './clean.ts'

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown): void {
  print(safeJson(value))
}

export function warn(text: string): void {
  process.stderr.write(`${text}\n`)
}

/**
 * A command as it can be typed here: by its name if that is how it was run, else as the file that it is. What is printed for
 * people to run must run as it is printed.
 */
export function typed(words: string): string {
  const [, script = ''] = process.argv
  if (/^terret(?:\.\w+)?$/.test(basename(script))) return `terret ${words}`
  const near = relative(process.cwd(), script)
  const path = near === '' || near.startsWith('..') || isAbsolute(near) ? script : near
  return `node ${/^[\w./@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`} ${words}`
}

/** A person is there: they can be asked, and a line may be drawn again. */
export function isAttended(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}
