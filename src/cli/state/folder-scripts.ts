// The scripts of a folder: those of the data folder, and those of the workspace if it is trusted. What a harness gets of
// them depends on the configuration.
import { join } from 'node:path'
import type { HarnessOptions } from '../../index.ts'
import type { ScriptMode } from '../../scripts/index.ts'
import { SCRIPT } from '../../view/script-cell.ts'
import type { Home } from './cli-home.ts'
import type { FolderSetup } from './folder-setup.ts'

type PlacedFolder = Pick<FolderSetup, 'folder' | 'trusted'> & { readonly home: Pick<Home, 'folder'> }

/** The user's own come first. */
export function scriptFolders({ home, folder, trusted }: PlacedFolder): readonly string[] {
  const own = join(home.folder, 'scripts')
  return trusted ? [own, join(folder, '.terret', 'scripts')] : [own]
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
