// Where a reader of a session's page stands, as one short text that it can hand back to go on without gap or duplicate. It grants
// nothing: access to the session is checked before it is read.
import { createHash } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../sessions/verbs.ts'
import type { Segment } from '../view/heard.ts'

export type Position = {
  /** The event that began the message the reader is in. It is told again from there, and what the reader has is left out. */
  readonly from: number
  /** The reader has all events before this one, and this one. */
  readonly seq: number
  /** Of the event `seq` the reader has only so many items. */
  readonly items?: number
  /** What the reader has of the reply that was coming: the model call, and how much of each text. */
  readonly call: number
  readonly heard: readonly HeardSegment[]
  /** Of what an agent said that the conversation was handed over to with the reply `call`. With no texts, that call has its result. */
  readonly fingerprint?: Fingerprint
}

/** Tells whether an answer begins with what the reader has. `chars`: how much that is; 0 if it was said to its end. */
export type Fingerprint = { readonly value: number; readonly chars: number }
/** What the reader has of the reply that is coming. */
export type Coming = Pick<Position, 'call' | 'heard' | 'fingerprint'>

/** `arguments`: of the n-th call of the reply. */
export type HeardSegment = Omit<Segment, 'kind'> & { readonly kind: Segment['kind'] | 'arguments' }

const LETTERS = { text: 't', reasoning: 'r', arguments: 'a' } as const
const KINDS = { t: 'text', r: 'reasoning', a: 'arguments' } as const

/** Of one reply. More texts than these are not counted, and come again. */
const SEGMENTS_MAX = 100
const FORM = new RegExp(
  `^([0-9a-f]{12})\\.(\\d{1,15})\\.(\\d{1,15})(?:\\.i(\\d{1,9}))?(?:\\.c(\\d{1,15})(?:\\.f(\\d{1,10})-(\\d{1,12}))?((?:\\.[tra]\\d{1,9}-\\d{1,12}){0,${SEGMENTS_MAX}}))?$`,
)

/** The log that a position belongs to: a session that was removed and made again is another. */
export async function logOf(session: Session): Promise<string> {
  const [first] = (await session.read(0, 1)).events
  return createHash('sha256').update(`${session.id}\n${first?.at}`).digest('hex').slice(0, 12)
}

export function writePosition(log: string, { from, seq, items, call, heard, fingerprint }: Position): string {
  const part = items === undefined ? '' : `.i${items}`
  const texts = heard.slice(0, SEGMENTS_MAX).map(({ kind, n, chars }) => `.${LETTERS[kind]}${n}-${chars}`)
  const print = fingerprint === undefined ? '' : `.f${fingerprint.value}-${fingerprint.chars}`
  const reply = call === 0 ? '' : `.c${call}${print}${texts.join('')}`
  return `${log}.${from}.${seq}${part}${reply}`
}

/** Throws `cursor_stale` for a place that this session does not have, `invalid_input` for what is not a position. */
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
  const there = own === log && position.from <= position.seq && (await has(session, position.seq))
  if (!there)
    throw new Fault('cursor_stale', `Session ${session.id} does not have this position. Load its messages again.`)
  return items === undefined ? position : { ...position, items: Number(items) }
}

async function has(session: Session, seq: number): Promise<boolean> {
  return seq >= 1 && (await session.read(seq - 1, 1)).events.length > 0
}

function segmentsIn(texts: string): readonly HeardSegment[] {
  const found = [...texts.matchAll(/\.([tra])(\d+)-(\d+)/g)]
  return found.map(([, kind, n, chars]) => ({
    kind: KINDS[kind as keyof typeof KINDS],
    n: Number(n),
    chars: Number(chars),
  }))
}
