// Reads a small, untrusted text file: a regular file of limited size inside its folder. A pipe, a device or a folder is refused at
// once, so nothing hangs.
import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { sep } from 'node:path'
import { EXIT, CliError } from '../exit.ts'

export const PLAIN_FILE_BYTES_MAX = 1024 * 1024

/** Null if it does not exist. `within`: a link out of this real folder is refused. */
export function readPlainFile(path: string, within?: string): string | null {
  let real: string
  try {
    real = realpathSync(path)
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT') || hasErrorCode(error, 'ENOTDIR')) return null
    throw unreadableError(path, 'cannot be read', error)
  }
  if (within !== undefined && !isInside(within, real))
    throw new CliError(EXIT.config, `${path} leads out of its folder, to ${real}. Put the file itself there.`)
  return readContent(path, real)
}

function readContent(path: string, real: string): string {
  let file: number
  try {
    file = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch (error) {
    throw unreadableError(path, 'cannot be read', error)
  }
  try {
    const found = fstatSync(file)
    if (!found.isFile())
      throw new CliError(EXIT.config, `${path} is not a regular file. Remove it, or put a file there.`)
    if (found.size > PLAIN_FILE_BYTES_MAX)
      throw new CliError(
        EXIT.config,
        `${path} has ${found.size} bytes; at most ${PLAIN_FILE_BYTES_MAX} are read. Make it shorter.`,
      )
    // Drop a byte order mark, which some editors write.
    return readFileSync(file, 'utf8').replace(/^\ufeff/, '')
  } finally {
    closeSync(file)
  }
}

/** By segments: `/a/bc` is not inside `/a/b`. */
export function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`)
}

function unreadableError(path: string, what: string, error: unknown): CliError {
  return new CliError(EXIT.config, `${path} ${what} (${fileErrorCode(error)}). Check its permissions.`)
}

export function fileErrorCode(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code)
  return error instanceof Error ? error.message : String(error)
}

/** The disk is full, or the user's quota is used up. */
export function isOutOfRoom(error: unknown): boolean {
  return hasErrorCode(error, 'ENOSPC') || hasErrorCode(error, 'EDQUOT')
}

export function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
