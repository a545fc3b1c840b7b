// The inspector beside the demo. It starts before the question, so that it can be answered there, and runs until Ctrl-C
// after the account.
import type { CommandArgs } from '../args.ts'
import { exitForError } from '../exit.ts'
import { findInspectorFolder } from '../../server/inspector-files.ts'
import { openServer, PORT, type OpenServer } from '../serve/open-server.ts'
import type { CommandContext } from '../state/command-context.ts'

/** A text says why there is no inspector. The demo goes on without it. */
export async function openInspector(place: CommandContext, call: CommandArgs): Promise<OpenServer | string> {
  if (findInspectorFolder() === null)
    return 'There is no inspector in this build (dist/web is missing): npm run build makes it.'
  try {
    return await startInspector(place, call)
  } catch (error) {
    return `The inspector cannot be served: ${exitForError(error).text}`
  }
}

/** Serves at the usual port, or at any free port if that is in use. */
async function startInspector(place: CommandContext, call: CommandArgs): Promise<OpenServer> {
  try {
    return await openServer(place, call, { port: PORT })
  } catch {
    return openServer(place, call, { port: 0 })
  }
}
