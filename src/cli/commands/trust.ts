// `terret trust`: from now on a folder's configuration, AGENTS.md and keys are read. Recorded by real path.
import type { Call } from '../args.ts'
import { clean } from '../clean.ts'
import { EXIT } from '../exit.ts'
import { homeOf, realFolder } from '../home.ts'
import { print, printJson } from '../print.ts'
import { distrustFolder, trustedFolders, trustFolder } from '../trust.ts'

export async function trust(call: Call): Promise<number> {
  const home = homeOf()
  if (call.is('list')) {
    for (const entry of trustedFolders(home)) {
      if (call.is('json')) printJson(entry)
      else print(clean(entry.path))
    }
    return EXIT.ok
  }
  const folder = realFolder(call.words[0] ?? process.cwd())
  const remove = call.is('remove')
  if (remove) distrustFolder(home, folder)
  else trustFolder(home, folder)
  if (call.is('json')) printJson({ folder, trusted: !remove })
  else
    print(
      remove
        ? `${clean(folder)} is trusted no longer.`
        : `${clean(folder)} is trusted. \`terret trust --remove\` takes it back.`,
    )
  return EXIT.ok
}
