// A reader's position in a session's page, as a short text that the reader hands back to continue without a gap or a
// duplicate. It grants no access: that is checked before the session is read.
import { createHash } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../sessions/verbs.ts'
import type { Segment } from '../view/heard-reply.ts'

export type Position = {
  /** The event that began the reader's current message. Reading restarts there and skips what the reader has. */
  readonly from: number
  /** The reader has all events up to this one. */
  readonly seq: number
  /** The number of items of event `seq` that the reader has. */
  readonly items?: number
  /** The reader's part of the reply in progress: its model call, and how much of each text. */
  readonly call: number
  readonly heard: readonly HeardSegment[]
  /** For a conversation that reply `call` handed over: the child's text. Without texts, that call has its result. */
  readonly fingerprint?: Fingerprint
}

/** Tells whether an answer begins with the reader's text. `chars`: the length of that text; 0 if it was complete. */
export type Fingerprint = { readonly value: number; readonly chars: number }
/** The reader's part of a reply in progress. */
export type IncomingReply = Pick<Position, 'call' | 'heard' | 'fingerprint'>

/** `arguments`: those of the n-th call of the reply. */
export type HeardSegment = Omit<Segment, 'kind'> & { readonly kind: Segment['kind'] | 'arguments' }

const LETTERS = { text: 't', reasoning: 'r', arguments: 'a' } as const
const KINDS = { t: 'text', r: 'reasoning', a: 'arguments' } as const

/** The most texts per reply. Further ones are not counted, and are repeated. */
const SEGMENTS_MAX = 100
const FORM = new RegExp(
  `^([0-9a-f]{12})\\.(\\d{1,15})\\.(\\d{1,15})(?:\\.i(\\d{1,9}))?(?:\\.c(\\d{1,15})(?:\\.f(\\d{1,10})-(\\d{1,12}))?((?:\\.[tra]\\d{1,9}-\\d{1,12}){0,${SEGMENTS_MAX}}))?$`,
)

/** Identifies the log of a position: a session that was removed and created again has another one. */
export async function readLogId(session: Session): Promise<string> {
  const [first] = (await session.events({ limit: 1 })).events
  if (!first) throw new Fault('session_missing', `There is no session ${session.id}. Check the id, or open a new one.`)
  return createHash('sha256').update(`${session.id}\n${first.at}`).digest('hex').slice(0, 12)
}

export function writePosition(log: string, { from, seq, items, call, heard, fingerprint }: Position): string {
  const part = items === undefined ? '' : `.i${items}`
  const texts = heard.slice(0, SEGMENTS_MAX).map(({ kind, n, chars }) => `.${LETTERS[kind]}${n}-${chars}`)
  const print = fingerprint === undefined ? '' : `.f${fingerprint.value}-${fingerprint.chars}`
  const reply = call === 0 ? '' : `.c${call}${print}${texts.join('')}`
  return `${log}.${from}.${seq}${part}${reply}`
}

/**
 * Throws `cursor_stale` for a position that this session does not have, and `invalid_input` for text that is not a
 * position.
 */
export async function readPosition(session: Session, log: string, cursor: unknown): Promise<Position> {
  const [, own, from = '', seq = '', items, call = '0', print, chars, texts = ''] = FORM.exec(String(cursor)) ?? []
  if (typeof cursor !== 'string' || own === undefined)
    throw new Fault(
      'invalid_input',
      'This is not a position of a stream. Hand back one that a stream gave, or leave it out.',
    )
  const position = {
    from: Number(from),
    seq: Number(seq),
    call: Number(call),
    heard: segmentsIn(texts),
    ...(print === undefined ? {} : { fingerprint: { value: Number(print), chars: Number(chars) } }),
  }
  const there = own === log && position.from <= position.seq && (await hasEvent(session, position.seq))
  if (!there)
    throw new Fault('cursor_stale', `Session ${session.id} does not have this position. Load its messages again.`)
  return items === undefined ? position : { ...position, items: Number(items) }
}

async function hasEvent(session: Session, seq: number): Promise<boolean> {
  return seq >= 1 && (await session.events({ after: seq - 1, limit: 1 })).events.length > 0
}

function segmentsIn(texts: string): readonly HeardSegment[] {
  const found = [...texts.matchAll(/\.([tra])(\d+)-(\d+)/g)]
  return found.map(([, kind, n, chars]) => ({
    kind: KINDS[kind as keyof typeof KINDS],
    n: Number(n),
    chars: Number(chars),
  }))
}
