// The scripts of a folder: those of the data folder, and those of the workspace if it is trusted. What a harness gets of
// them depends on the configuration.
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { HarnessOptions } from '../../index.ts'
import type { ScriptMode } from '../../scripts/index.ts'
import { SCRIPT } from '../../view/script-cell.ts'
import type { Home } from './cli-home.ts'
import type { FolderSetup } from './folder-setup.ts'
import { isInside } from './plain-file.ts'

type PlacedFolder = Pick<FolderSetup, 'folder' | 'trusted'> & { readonly home: Pick<Home, 'folder'> }

/** The user's own come first. A folder of the workspace that is a link out of it is left out. */
export function scriptFolders({ home, folder, trusted }: PlacedFolder): readonly string[] {
  const own = join(home.folder, 'scripts')
  const theirs = join(folder, '.terret', 'scripts')
  return trusted && !leadsOut(folder, theirs) ? [own, theirs] : [own]
}

function leadsOut(folder: string, path: string): boolean {
  try {
    return !isInside(realpathSync(folder), realpathSync(path))
  } catch {
    return false
  }
}

/**
 * The planner, and the tool if the configuration lets models write scripts. A script that a person runs needs the
 * planner alone.
 */
export async function scriptParts(
  setup: FolderSetup,
  agent: string | undefined,
): Promise<Pick<HarnessOptions, 'tools' | 'graphs'>> {
  const { settings, mode } = setup
  const own: ScriptMode = mode === 'plan' ? 'off' : (settings.scripts ?? 'off')
  if (own === 'off' && (agent !== SCRIPT || mode === 'plan')) return {}
  const { createScripts } = await import('../../scripts/index.ts')
  const folders = scriptFolders(setup)
  const { tool, planner } = createScripts({ mode: own === 'off' ? 'on' : own, folders })
  return { graphs: [planner], ...(own === 'off' ? {} : { tools: [tool] }) }
}
