// `terret pin`: lists, adds and removes the texts that every later request of a session holds word for word. It drives
// nothing.
import type { CommandArgs } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { print, printJson, warn } from '../present/print.ts'
import { withStore, findSession } from '../state/command-context.ts'
import { withoutDriving } from '../state/without-driving.ts'

type PinRow = { readonly seq: number; readonly text: string; readonly inherited?: true; readonly name?: string }
const TEXT_CHARS = 200

export function pinCommand(call: CommandArgs): Promise<number> {
  return withStore(async (place) => {
    const [given = '', text] = call.words
    const [message, remove] = [call.count('message'), call.text('remove')]
    const asked = [text, message, remove].filter((each) => each !== undefined)
    if (asked.length > 1) throw new CliError(EXIT.usage, 'Give one of these: TEXT, --message SEQ, --remove SEQ.')
    if (remove !== undefined && !/^\^{0,100}[1-9]\d{0,15}$/.test(remove))
      throw new CliError(EXIT.usage, '--remove takes the number of a pin as the list shows it, such as 12 or ^12.')
    const { session } = await findSession(place, given)
    const what = text ?? message
    const all = await withoutDriving(place, async (sessions) => {
      const pins = sessions.session(session, { stored: true })
      if (what !== undefined) await pins.pin(what)
      if (remove !== undefined) await pins.pin(remove, { off: true })
      return pins.status({ include: ['pins'] }).then(({ pins }) => pins)
    })
    if (call.is('json')) printJson({ session, pins: all })
    else if (all.length === 0) warn('Nothing is pinned.')
    else for (const each of all) print(pinLine(each))
    return EXIT.ok
  })
}

/** One row, with the number that `--remove` takes. */
export function pinLine({ seq, text, inherited, name = String(seq) }: PinRow): string {
  return `${name.padStart(5)}  ${oneLine(text, TEXT_CHARS)}${inherited ? ' (from before the fork)' : ''}`
}
