// The folders of the command line: the data folder with its database, and the user's configuration folder. This file
// handles only paths and permissions, not the contents of the files.
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { makeFolder } from '../../stores/plan/make-folder.ts'
import { syncFolder } from '../../stores/plan/sync-path.ts'
import { harnessFolders } from '../../tools/files/harness-folders.ts'
import { EXIT, CliError } from '../exit.ts'
import { fileErrorCode, isOutOfRoom } from './plain-file.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export type Home = {
  /** `TERRET_HOME`, or the user's data folder. */
  readonly folder: string
  readonly database: string
  readonly trust: string
  readonly folders: string
  readonly pins: string
  /** Rules saved by "always", by folder. */
  readonly rules: string
  /** Which hooks of the configuration the user was shown. */
  readonly hooks: string
  /** The file with the last seen state of the database. */
  readonly seen: string
  /** The folder with `config.json` and `.env` of the user. */
  readonly config: string
}

export function findHome(env: Environment = process.env, platform = process.platform): Home {
  const given = env['TERRET_HOME']
  if (given && !isAbsolute(given)) {
    throw new CliError(
      EXIT.config,
      `TERRET_HOME is "${given}", which is not an absolute path. Set it to one, or unset it.`,
    )
  }
  const { data: folder, config } = harnessFolders(env, platform)
  return {
    folder,
    database: join(folder, 'terret.db'),
    trust: join(folder, 'trust.json'),
    folders: join(folder, 'folders.jsonl'),
    pins: join(folder, 'mcp-pins.json'),
    rules: join(folder, 'rules.json'),
    hooks: join(folder, 'hooks.json'),
    seen: join(folder, 'store.json'),
    config,
  }
}

const OWN_FOLDER = 'Set TERRET_HOME to a folder of its own.'

/** Creates the data folder, readable by its owner only. */
export function makeHome(home: Home): void {
  const { folder } = home
  try {
    makeFolder(folder)
    if ((statSync(folder).mode & 0o077) === 0) return
    // Do not change the permissions of an existing folder that was named by mistake.
    const ours = existsSync(join(folder, 'terret.db')) || readdirSync(folder).length === 0
    if (!ours) throw new CliError(EXIT.store, `${folder} holds other files that other users can read. ${OWN_FOLDER}`)
    chmodSync(folder, 0o700)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw unusableHome(home, error)
  }
}

export function unusableHome({ folder }: Home, error: unknown): CliError {
  if (isOutOfRoom(error))
    return new CliError(EXIT.store, `The disk is full where the data folder ${folder} is. Make room. (disk_full)`)
  const what = `The data folder ${folder} cannot be used (${fileErrorCode(error)}).`
  return new CliError(EXIT.store, `${what} Make it writable, or set TERRET_HOME to another folder.`)
}

/** Replaces a file atomically: writes a temporary file, syncs and renames it, and syncs the folder with the new name. */
export function replaceFile(path: string, text: string): void {
  const beside = `${path}.${process.pid}.tmp`
  try {
    const file = openSync(beside, 'w', 0o600)
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(beside, path)
    syncFolder(dirname(path))
  } catch (error) {
    rmSync(beside, { force: true })
    throw error
  }
}

/** The same in the data folder, with an error that names that folder. */
export function replaceHomeFile(home: Home, path: string, text: string): void {
  try {
    replaceFile(path, text)
  } catch (error) {
    throw unusableHome(home, error)
  }
}

/** The folder that a command works on, with every link resolved. */
export function realFolder(path: string): string {
  try {
    const real = realpathSync.native(path)
    if (statSync(real).isDirectory()) return real
  } catch {}
  throw new CliError(EXIT.missing, `There is no folder ${path}. Check the path.`)
}
