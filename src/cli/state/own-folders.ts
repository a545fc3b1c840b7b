// The folders in which no agent may work: those that hold Terret's own records, its trust and the user's keys.
import { realpathSync } from 'node:fs'
import { EXIT, CliError } from '../exit.ts'
import { terretCommand } from '../present/print.ts'
import { remoteServer } from './remote-server.ts'
import { type Home, findHome } from './cli-home.ts'
import { isInside } from './plain-file.ts'
import { findStore } from './store-location.ts'
import { workspaceFolder } from './workspace.ts'

/** An agent that may write here must not reach its own records, its own trust or the user's keys. */
export function refuseOwnFolders(home: Home, folder: string): void {
  const trouble = findOwnFolder(home, folder)
  if (trouble !== null) throw new CliError(EXIT.config, trouble)
}

/** A sentence for an empty list: how to start a first session here, or why a run would be refused. */
export function describeStart(what = 'one'): string {
  return findTroubleHere() ?? `\`${terretCommand`run TASK`}\` starts ${what}.`
}

/** Why no agent may work in the current folder, or null. */
export function findTroubleHere(): string | null {
  return remoteServer() ? null : findOwnFolder(findHome(), workspaceFolder())
}

/** Why no agent may work in this folder, or null. */
function findOwnFolder(home: Home, folder: string): string | null {
  const { folder: data, config } = home
  const held = [data, config].map(realPathOrSame).find((own) => isInside(folder, own) || isInside(own, folder))
  if (held !== undefined)
    return `${folder} and Terret's own folder ${held} lie in each other. Work in a folder of its own.`
  const store = findStore(home)
  if (store.type === 'file' && isInside(folder, realPathOrSame(store.file)))
    return `The store ${store.file} lies in ${folder}. Keep it where no agent works.`
  return null
}

function realPathOrSame(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
