// Reads text that is piped into a command: `cat log | terret run "explain"`, or the task itself with `terret run -`.
import { fstatSync } from 'node:fs'
import { isUtf8 } from 'node:buffer'
import { detectMedia } from '../../tools/core/file-part.ts'
import { EXIT, CliError } from '../exit.ts'
import { warn } from './print.ts'

const BYTES_MAX = 1024 * 1024
/** A program may start this one with a pipe that it neither writes to nor closes. */
const FIRST_BYTE_MS = 3_000

/**
 * The first bytes of files that people pipe by mistake, in latin1. Media that models can see are recognised elsewhere.
 */
const KINDS: readonly (readonly [string, string])[] = [
  ['\x1f\x8b', 'gzip'],
  ['PK\x03\x04', 'a zip archive'],
  ['\x7fELF', 'a program'],
  ['SQLite format 3', 'an SQLite database'],
  ['BZh', 'bzip2'],
  ['\xfd7zXZ', 'xz'],
  ['\x28\xb5\x2f\xfd', 'zstd'],
]

/**
 * The text on standard input; null if nothing is piped in. With `expected`, which is a `-` among the words, it waits
 * for the end of the input without a limit. Otherwise it goes on without the input if nothing has come in three
 * seconds.
 */
export async function readStdin(expected: boolean): Promise<string | null> {
  if (!expected && !isPiped()) return null
  const bytes = await readBytes(expected)
  if (bytes === null || bytes.length === 0) {
    if (expected)
      throw new CliError(EXIT.usage, 'Nothing came on standard input. Pipe a text in, or give the task itself.')
    return null
  }
  const text = bytes.toString('utf8')
  if (isUtf8(bytes) && !text.includes('\0')) return text
  const kind = binaryKind(bytes)
  const isOtherText = kind === null && !bytes.includes(0) && isMostlyText(bytes)
  throw new CliError(
    EXIT.usage,
    isOtherText
      ? 'Standard input is not UTF-8 text: convert it first, for example with iconv -f latin1 -t utf-8'
      : `Standard input is ${kind ?? 'binary'}, and not text. Save it as a file, and name the file in the task.`,
  )
}

/** True if at most one byte of a hundred is a control character that texts do not have. */
function isMostlyText(bytes: Buffer): boolean {
  const controls = bytes.filter((byte) => (byte < 0x20 && !TEXT_CONTROLS.includes(byte)) || byte === 0x7f)
  return controls.length * 100 <= bytes.length
}

/** Backspace, tab, line feed, form feed, carriage return and escape. */
const TEXT_CONTROLS: readonly number[] = [8, 9, 10, 12, 13, 27]

/** False for a terminal and for /dev/null. */
function isPiped(): boolean {
  try {
    const found = fstatSync(0)
    return found.isFIFO() || found.isFile() || found.isSocket()
  } catch {
    return false
  }
}

async function readBytes(expected: boolean): Promise<Buffer | null> {
  const pieces: Buffer[] = []
  let size = 0
  let timer: NodeJS.Timeout | undefined
  if (!expected)
    timer = setTimeout(() => {
      warn('Nothing came on standard input in 3 s: going on without it. With - as the last word, it is waited for.')
      process.stdin.destroy()
    }, FIRST_BYTE_MS)
  try {
    for await (const piece of process.stdin) {
      clearTimeout(timer)
      pieces.push(piece as Buffer)
      size += (piece as Buffer).length
      if (size > BYTES_MAX)
        throw new CliError(
          EXIT.usage,
          'Standard input has more than 1 MB. Save it as a file, and name the file in the task.',
        )
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    return null
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(pieces)
}

function binaryKind(bytes: Buffer): string | null {
  const head = bytes.subarray(0, 16).toString('latin1')
  return detectMedia(bytes) ?? KINDS.find(([begins]) => head.startsWith(begins))?.[1] ?? null
}
