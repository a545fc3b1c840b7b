// `terret compact`: summarises the older part of a session now, with the model of its folder. It does not continue the
// session.
import type { CommandArgs } from '../args.ts'
import { EXIT } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { print, printJson, warn } from '../present/print.ts'
import { withStore, findSession, workingFolder } from '../state/command-context.ts'
import { readCommandSetup, withHarness } from '../state/drive-session.ts'

export function compactCommand(call: CommandArgs): Promise<number> {
  return withStore(async (place) => {
    const { session: id, agent } = await findSession(place, call.words[0] ?? '')
    const setup = await readCommandSetup(place, await workingFolder(place, id), call, { agent })
    const focus = call.text('focus')
    return withHarness(
      place,
      setup,
      call,
      async (harness) => {
        const done = await harness.session(id, { stored: true }).compact(focus === undefined ? {} : { focus })
        if (call.is('json')) printJson({ session: id, compacted: done })
        else if (done === null) warn(TOO_SHORT)
        else print(compactionText(done))
        return done !== null && 'failed' in done ? EXIT.failed : EXIT.ok
      },
      agent,
    )
  })
}

export const TOO_SHORT = 'There is too little to summarise.'

export function compactionText(
  done: { readonly failed: string } | { readonly before: number; readonly after: number; readonly coded?: string },
): string {
  if ('failed' in done) return `It was not compacted: ${clean(done.failed)}.`
  const sizes = `Compacted: about ${done.before} tokens before, ${done.after} now.`
  return done.coded === undefined ? sizes : `${sizes} No summary of the model counted: ${clean(done.coded)}.`
}
