// The folders of the harness itself: records, and configuration with the user's keys. It only names them: they are
// made, read, hidden and protected elsewhere.
import { homedir, userInfo } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'

/** The folder for the worktrees of children, within the folder of their parent. */
export const WORKTREES = join('.terret', 'worktrees')

export type HarnessFolders = {
  /** The folder of records. */
  readonly data: string
  /** The folder of configuration and keys. */
  readonly config: string
  /** Both folders, and their default places too: older data there is protected as well. */
  readonly all: readonly string[]
}

export function harnessFolders(
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: string = process.platform,
): HarnessFolders {
  const home = homeFolder(env['HOME'])
  const share = platform === 'darwin' ? join('Library', 'Application Support') : join('.local', 'share')
  const usual = [join(home, share, 'terret'), join(home, '.config', 'terret'), join(home, '.terret')] as const
  const shared = terretFolderIn(env['XDG_DATA_HOME']) ?? usual[0]
  const data = absoluteOrNull(env['TERRET_HOME']) ?? shared
  const config = terretFolderIn(env['XDG_CONFIG_HOME']) ?? usual[1]
  return { data, config, all: [...new Set([data, config, shared, ...usual])] }
}

/**
 * Without `HOME`, or with an empty one, uses the system's home folder of the user. A relative path is made absolute.
 */
function homeFolder(given: string | undefined): string {
  const found = [given, homedir(), passwordHome()].find((path) => path !== undefined && path !== '')
  return resolve(found ?? '/')
}

/** Undefined for a user without an entry in the password file. */
function passwordHome(): string | undefined {
  try {
    return userInfo().homedir
  } catch {
    return undefined
  }
}

function terretFolderIn(folder: string | undefined): string | null {
  const whole = absoluteOrNull(folder)
  return whole === null ? null : join(whole, 'terret')
}

/** A relative or empty path counts as not set, as the XDG specification says. */
function absoluteOrNull(path: string | undefined): string | null {
  return path !== undefined && isAbsolute(path) ? path : null
}
