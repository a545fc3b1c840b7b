// `terret pin`: what a session keeps word for word in every later request: lists it, adds to it, lets it go. Nothing is driven.
import type { Call } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { print, printJson, warn } from '../present/print.ts'
import { clientOf } from '../state/far.ts'
import { inPlace, type Place, sessionOf } from '../state/place.ts'
import { PROGRAM } from '../state/program.ts'

type Pin = { readonly seq: number; readonly text: string; readonly inherited?: true; readonly name?: string }
/** The verbs of a session, here or on a server. */
type Pins = {
  pin(what: string | number): Promise<{ readonly seq: number }>
  unpin(what: number | string): Promise<void>
  pins(): Promise<readonly Pin[]>
}

const TEXT_CHARS = 200

export function pin(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const [given = '', text] = call.words
    const [message, remove] = [call.count('message'), call.text('remove')]
    const asked = [text, message, remove].filter((each) => each !== undefined)
    if (asked.length > 1) throw new Refusal(EXIT.usage, 'Give one of these: TEXT, --message SEQ, --remove SEQ.')
    if (remove !== undefined && !/^\^{0,100}[1-9]\d{0,15}$/.test(remove))
      throw new Refusal(EXIT.usage, '--remove takes the number of a pin as the list shows it, such as 12 or ^12.')
    const { session } = await sessionOf(place, given)
    const what = text ?? message
    const all = await withPins(place, session, async (pins) => {
      if (what !== undefined) await pins.pin(what)
      if (remove !== undefined) await pins.unpin(remove)
      return pins.pins()
    })
    if (call.is('json')) printJson({ session, pins: all })
    else if (all.length === 0) warn('Nothing is pinned.')
    else for (const each of all) print(pinLine(each))
    return EXIT.ok
  })
}

/** One row, with the number that lets it go. */
export function pinLine({ seq, text, inherited, name = String(seq) }: Pin): string {
  return `${name.padStart(5)}  ${oneLine(text, TEXT_CHARS)}${inherited ? ' (from before the fork)' : ''}`
}

async function withPins<T>(place: Place, session: string, act: (pins: Pins) => Promise<T>): Promise<T> {
  const client = clientOf(place.store)
  if (client) return act(client.session(session))
  const { Harness, offline } = await import('../../index.ts')
  const harness = new Harness({ program: PROGRAM, model: offline(), store: place.store, drives: false })
  try {
    return await act(harness.session(session, { stored: true }))
  } finally {
    await harness.close()
  }
}
