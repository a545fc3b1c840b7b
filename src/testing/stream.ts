// The text of a stream, piece by piece: the events of the answer, with what the script wants added, left out or repeated.
import type { Answer } from './answer.ts'
import type { Mischief } from './script.ts'
import { type Frame, framed, type Voice } from './voice.ts'

const HUGE_PIECE_CHARS = 64 * 1024

/** `rest` waits for the time between two signs of life, and says false when nobody listens any more. */
export async function* streamed(
  voice: Voice,
  answer: Answer,
  mischief: Mischief,
  rest: () => Promise<boolean>,
): AsyncGenerator<string> {
  const { noEnd, pingsOnly, endless, errorAfter, hugeLine, junk } = mischief
  const frames = voice.frames(answer).filter((frame) => !(noEnd && frame.part === 'end'))
  const said = frames.slice(0, lengthOf(frames, mischief))
  for (const [at, frame] of said.entries()) {
    yield framed(frame)
    if (at === 0 && hugeLine !== undefined) yield* huge(voice, hugeLine)
    if (junk) yield junkAfter(voice, at)
  }
  if (errorAfter !== undefined) yield framed(voice.failed(said.length))
  if (pingsOnly) while (await rest()) yield voice.ping
  const again = endless ? said.at(-1) : undefined
  if (again !== undefined) for (;;) yield framed(again)
}

function lengthOf(frames: readonly Frame[], { pingsOnly, endless, errorAfter }: Mischief): number {
  if (pingsOnly) return 1
  if (errorAfter !== undefined) return errorAfter
  const text = frames.findIndex(({ part }) => part === 'text')
  // An answer without text repeats its last event.
  return endless && text >= 0 ? text + 1 : frames.length
}

function* huge(voice: Voice, bytes: number): Generator<string> {
  const mark = '\u0000'
  const [before = '', after = ''] = framed(voice.unknown(mark)).split(JSON.stringify(mark).slice(1, -1))
  yield before
  for (let left = bytes; left > 0; left -= HUGE_PIECE_CHARS) yield 'x'.repeat(Math.min(left, HUGE_PIECE_CHARS))
  yield after
}

/** A comment, a sign of life, an event that nobody knows, fields that nobody reads, an event without data. */
function junkAfter(voice: Voice, at: number): string {
  const kinds = [
    ': chaos\n\n',
    voice.ping,
    framed(voice.unknown('')),
    'id: 7\nretry: 10\nchaos: 1\n\n',
    'event: chaos\n\n',
  ]
  return kinds[at % kinds.length] ?? ''
}
