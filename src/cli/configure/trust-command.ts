// `terret trust`: from now on a folder's configuration, AGENTS.md and keys are read. The folder is recorded by its real
// path.
import { resolve } from 'node:path'
import type { CommandArgs } from '../args.ts'
import { clean } from '../../view/clean.ts'
import { EXIT } from '../exit.ts'
import { type Home, findHome, realFolder } from '../state/cli-home.ts'
import { print, printJson, terretCommand, warn } from '../present/print.ts'
import { showHooks } from '../state/config-hooks.ts'
import { readSetup } from '../state/folder-setup.ts'
import { distrustFolder, isTrusted, trustedFolders, trustFolder } from '../state/trusted-folders.ts'
import { workspaceFolder } from '../state/workspace.ts'

export async function trustCommand(call: CommandArgs): Promise<number> {
  const home = findHome()
  if (call.is('list')) {
    const all = trustedFolders(home)
    if (all.length === 0 && !call.is('json'))
      warn(`No folder is trusted yet. \`${terretCommand`trust`}\` trusts this one.`)
    for (const entry of all) {
      if (call.is('json')) printJson(entry)
      else print(clean(entry.path))
    }
    return EXIT.ok
  }
  const remove = call.is('remove')
  const folder = folderMeant(home, call.words[0] ?? workspaceFolder(), remove)
  if (remove) distrustFolder(home, folder)
  else trustFolder(home, folder)
  if (call.is('json')) printJson({ folder, trusted: !remove })
  else
    print(
      remove
        ? `${clean(folder)} is trusted no longer.`
        : `${clean(folder)} is trusted. \`${terretCommand`trust --remove`}\` takes it back.`,
    )
  // A configuration that cannot be read is said by the next command that needs it.
  const setup = remove || call.is('json') ? null : await readSetup(home, folder).catch(() => null)
  if (setup) showHooks(home, setup.hooks)
  return EXIT.ok
}

/** A folder that no longer exists is untrusted by its recorded path. */
function folderMeant(home: Home, path: string, remove: boolean): string {
  const whole = resolve(path)
  return remove && isTrusted(home, whole) ? whole : realFolder(path)
}
