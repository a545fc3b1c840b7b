// `terret undo`: reverts the file changes of a run. Files changed since then are left alone.
import type { Call } from '../args.ts'
import { fileToolsOf } from '../state/agent.ts'
import { oneLine } from '../present/clean.ts'
import { EXIT } from '../exit.ts'
import { inPlace, sessionOf, workplaceOf } from '../state/place.ts'
import { print, printJson, warn } from '../present/print.ts'
import { partsOf, workflowOf } from '../state/workflows.ts'

export const SAID = {
  restored: 'put back as it was',
  removed: 'removed, as it was new',
  changed_since: 'left alone: it was changed since',
  not_kept: 'left alone: the old content was not kept',
} as const

export function undo(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const { session, agent } = await sessionOf(place, call.words[0] ?? '')
    const folder = await workplaceOf(place, session)
    const tools = await fileToolsOf(folder)
    const { Harness, offline } = await import('../../index.ts')
    const workflow = workflowOf(agent)
    const parts = workflow === null ? {} : await partsOf(workflow, folder)
    const harness = new Harness({ model: offline(), tools, store: place.store, drives: false, ...parts })
    try {
      const undone = await harness.session(session).undo(call.count('run'))
      if (call.is('json')) printJson({ session, undone })
      else if (undone.length === 0)
        warn(workflow === null ? 'There was nothing to take back.' : 'The file of a report is not taken back.')
      else for (const { what, result } of undone) print(`${oneLine(what)}: ${SAID[result]}`)
      return undone.every(({ result }) => result === 'restored' || result === 'removed') ? EXIT.ok : EXIT.conflict
    } finally {
      await harness.close()
    }
  })
}
