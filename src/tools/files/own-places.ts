// Where the harness keeps what is its own: records and configuration, with the user's keys. Only places: they are made,
// read, hidden and protected elsewhere.
import { homedir, userInfo } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'

/** The worktrees of children, in the folder of their parent. */
export const WORKTREES = join('.terret', 'worktrees')

export type OwnPlaces = {
  /** Records. */
  readonly data: string
  /** Configuration and keys. */
  readonly config: string
  /** These, and wherever they are when the variables say nothing: an older one is protected too. */
  readonly all: readonly string[]
}

export function ownPlaces(
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: string = process.platform,
): OwnPlaces {
  const home = homeFolder(env['HOME'])
  const share = platform === 'darwin' ? join('Library', 'Application Support') : join('.local', 'share')
  const usual = [join(home, share, 'terret'), join(home, '.config', 'terret'), join(home, '.terret')] as const
  const shared = within(env['XDG_DATA_HOME']) ?? usual[0]
  const data = absolute(env['TERRET_HOME']) ?? shared
  const config = within(env['XDG_CONFIG_HOME']) ?? usual[1]
  return { data, config, all: [...new Set([data, config, shared, ...usual])] }
}

/** Without `HOME`, or with an empty one, the folder that the system has for the user. A relative path would depend on where one is. */
function homeFolder(given: string | undefined): string {
  const found = [given, homedir(), passwordHome()].find((path) => path !== undefined && path !== '')
  return resolve(found ?? '/')
}

/** A user without an entry has none. */
function passwordHome(): string | undefined {
  try {
    return userInfo().homedir
  } catch {
    return undefined
  }
}

function within(folder: string | undefined): string | null {
  const whole = absolute(folder)
  return whole === null ? null : join(whole, 'terret')
}

/** A relative one counts as not set, as the XDG convention wants it; so does an empty one. */
function absolute(path: string | undefined): string | null {
  return path !== undefined && isAbsolute(path) ? path : null
}
