// `terret trust`: from now on a folder's configuration, AGENTS.md and keys are read. Recorded by real path.
import { resolve } from 'node:path'
import type { Call } from '../args.ts'
import { clean } from '../../view/clean.ts'
import { EXIT } from '../exit.ts'
import { type Home, homeOf, realFolder } from '../state/home.ts'
import { print, printJson, typed, warn } from '../present/print.ts'
import { distrustFolder, isTrusted, trustedFolders, trustFolder } from '../state/trust.ts'

export async function trust(call: Call): Promise<number> {
  const home = homeOf()
  if (call.is('list')) {
    const all = trustedFolders(home)
    if (all.length === 0 && !call.is('json')) warn(`No folder is trusted yet. \`${typed`trust`}\` trusts this one.`)
    for (const entry of all) {
      if (call.is('json')) printJson(entry)
      else print(clean(entry.path))
    }
    return EXIT.ok
  }
  const remove = call.is('remove')
  const folder = folderMeant(home, call.words[0] ?? process.cwd(), remove)
  if (remove) distrustFolder(home, folder)
  else trustFolder(home, folder)
  if (call.is('json')) printJson({ folder, trusted: !remove })
  else
    print(
      remove
        ? `${clean(folder)} is trusted no longer.`
        : `${clean(folder)} is trusted. \`${typed`trust --remove`}\` takes it back.`,
    )
  return EXIT.ok
}

/** A removed folder is untrusted by its old path. */
function folderMeant(home: Home, path: string, remove: boolean): string {
  const whole = resolve(path)
  return remove && isTrusted(home, whole) ? whole : realFolder(path)
}
