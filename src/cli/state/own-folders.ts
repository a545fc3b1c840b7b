// Which folders an agent must not work in: those that hold Terret's own records, its trust and the user's keys.
import { realpathSync } from 'node:fs'
import { EXIT, Refusal } from '../exit.ts'
import { typed } from '../present/print.ts'
import { farNamed } from './far.ts'
import { type Home, homeOf, realFolder } from './home.ts'
import { isInside } from './plain-file.ts'
import { storeIn } from './store-place.ts'

/** An agent that may write here must not reach its own records, its own trust or the user's keys. */
export function refuseOwnFolders(home: Home, folder: string): void {
  const trouble = findOwnFolder(home, folder)
  if (trouble !== null) throw new Refusal(EXIT.config, trouble)
}

/** How a first session is started here, as a sentence for a list that is empty. Where a run would be refused, why. */
export function describeStart(what = 'one'): string {
  return findTroubleHere() ?? `\`${typed`run TASK`}\` starts ${what}.`
}

/** Why no agent may work in the current folder, or null. */
export function findTroubleHere(): string | null {
  return farNamed() ? null : findOwnFolder(homeOf(), realFolder(process.cwd()))
}

/** Why no agent may work in this folder, or null. */
function findOwnFolder(home: Home, folder: string): string | null {
  const { folder: data, config } = home
  const held = [data, config].map(realOr).find((own) => isInside(folder, own) || isInside(own, folder))
  if (held !== undefined)
    return `${folder} and Terret's own folder ${held} lie in each other. Work in a folder of its own.`
  const store = storeIn(home)
  if (store.type === 'file' && isInside(folder, realOr(store.file)))
    return `The store ${store.file} lies in ${folder}. Keep it where no agent works.`
  return null
}

function realOr(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
