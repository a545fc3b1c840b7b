// `terret script`: lists and shows the saved scripts, and runs one in a new session.
import { realpathSync } from 'node:fs'
import type { Harness } from '../../index.ts'
import { listScripts, readScript, type SavedScript } from '../../scripts/saved-scripts.ts'
import type { CommandArgs } from '../args.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { print, printJson, shortId, terretCommand, warn } from '../present/print.ts'
import { findHome } from '../state/cli-home.ts'
import { withStore } from '../state/command-context.ts'
import { driveAndReport, readCommandSetup } from '../state/drive-session.ts'
import { SCRIPT } from '../../view/script-cell.ts'
import { scriptFolders } from '../state/folder-scripts.ts'
import { startSessionIn } from '../state/session-folders.ts'
import { isTrusted } from '../state/trusted-folders.ts'
import { workspaceFolder } from '../state/workspace.ts'

const USAGE = 'Usage: terret script list, terret script show NAME, or terret script run NAME'

export async function scriptCommand(call: CommandArgs): Promise<number> {
  const [verb = '', name = '', ...more] = call.words
  const wants = { list: 1, show: 2, run: 2 }[verb]
  if (wants !== call.words.length || more.length > 0) throw new CliError(EXIT.usage, USAGE)
  if (verb === 'list') return listSaved(call)
  const script = findScript(name)
  if (verb === 'run') return runSaved(call, script)
  if (call.is('json')) printJson({ name, folder: script.folder, script: script.text })
  else
    print(
      ...script.text
        .trimEnd()
        .split('\n')
        .map((line) => clean(line)),
    )
  return EXIT.ok
}

function foldersHere(): readonly string[] {
  const [home, folder] = [findHome(), workspaceFolder()]
  return scriptFolders({ home, folder, trusted: isTrusted(home, folder) })
}

function listSaved(call: CommandArgs): number {
  const scripts = listScripts(foldersHere())
  if (call.is('json')) printJson({ scripts })
  else if (scripts.length === 0)
    warn(`No script is saved here. Put one into ${oneLine(foldersHere()[0] ?? '')} as NAME.js.`)
  else for (const { name, folder } of scripts) print(clean(`${name.padEnd(24)} ${oneLine(folder)}`))
  return EXIT.ok
}

function findScript(name: string): SavedScript {
  const script = readScript(foldersHere(), name)
  if (script !== null) return script
  throw new CliError(
    EXIT.missing,
    `There is no saved script "${oneLine(name, 64)}". See ${terretCommand`script list`}.`,
  )
}

function runSaved(call: CommandArgs, { name, text }: SavedScript): Promise<number> {
  return withStore(async (place) => {
    const folder = realpathSync(place.folder)
    const setup = await readCommandSetup(place, folder, call, { agent: SCRIPT })
    if (setup.mode === 'plan') throw new CliError(EXIT.usage, 'No script runs in plan mode. Use --mode ask.')
    const open = async (harness: Harness) => {
      const session = await startSessionIn(place, folder, (as) => harness.open({ ...as, agent: SCRIPT }))
      if (!call.is('quiet') && !call.is('json')) warn(`Script ${clean(name)} ${shortId(session.id)}`)
      return session
    }
    const input = JSON.stringify({ name, script: text })
    return driveAndReport(place, call, { setup, agent: SCRIPT, open, input })
  })
}
