// Dead letters: items of queues that were given up after so many tries. They are read from the logs of the queues'
// sessions, and a decision about one is a message to its session: the first decision counts, and the log says whose.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { nonEmptyCheck, oneOf, optionsChecker, requiredCheck } from '../options.ts'
import type { Sessions } from '../sessions/verbs.ts'
import { consumerOfAgent, laneAgent, LANE_AGENTS } from '../view/lanes.ts'
import { type LetterDecision, readDecision } from '../view/letter-decision.ts'
import { textOf } from '../view/shown-text.ts'
import { parseJson } from '../view/untrusted-json.ts'
import { type DeadItem, foldQueue } from './item-queue.ts'

/** A harness, or a client of one. */
export type LetterSessions = Pick<Sessions, 'list' | 'session'>

/** An item of a queue, such as a settled run, that failed too often. It waits for a decision. */
export type DeadLetter = {
  /** The same in every try; with the lane it names the letter. */
  readonly key: string
  /** The session that holds it. */
  readonly lane: string
  /** The name of the consumer. */
  readonly consumer: string
  /** What it is about: for a consumer the session, the first and the last event of the run. */
  readonly about: Json
  /** How often it was tried in vain. */
  readonly tries: number
  /** Why the last try failed. */
  readonly reason: string
  /** When it was given up, in ms since 1970. */
  readonly at: number
  /** How often it was a dead letter. A decision is about one of these times. */
  readonly deaths: number
}

/** Which dead letters are listed. */
export type LetterFilter = {
  /** Only letters of this consumer. Default: of all. */
  readonly consumer?: string
}
const checkFilter = optionsChecker<LetterFilter>('deadLetters', { consumer: nonEmptyCheck })
const PAGE = 100

/** All dead letters of all consumers, or of one, the oldest first. */
export async function deadLetters(sessions: LetterSessions, filter: LetterFilter = {}): Promise<readonly DeadLetter[]> {
  checkFilter(filter)
  const { consumer } = filter
  const agent = consumer === undefined ? LANE_AGENTS : laneAgent(consumer)
  const letters: DeadLetter[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Awaited<ReturnType<Sessions['list']>> = await sessions.list({
      agent,
      order: 'made',
      limit: PAGE,
      ...(cursor === '' ? {} : { cursor }),
    })
    for (const { session, agent: of } of page.cards)
      for (const item of await readDead(sessions, session)) letters.push(letterOf(item, session, of))
    cursor = page.next
  }
  return letters.sort((a, b) => a.at - b.at)
}

async function readDead(sessions: LetterSessions, lane: string): Promise<readonly DeadItem[]> {
  return [...foldQueue(await sessions.session(lane, { stored: true }).messages()).dead.values()]
}

function letterOf({ key, data, tries, reason, at, deaths }: DeadItem, lane: string, agent: string): DeadLetter {
  return { key, lane, consumer: consumerOfAgent(agent), about: data, tries, reason, at, deaths }
}

/** What is decided about a dead letter: it is tried again, or dropped. */
export type LetterChoice = {
  /** The lane of the letter, as it is listed. */
  readonly lane: string
  /** The key of the letter, as it is listed. */
  readonly key: string
  /** `retry` begins its tries again, `drop` forgets it. */
  readonly decision: 'retry' | 'drop'
  /** Who decides, for the log. */
  readonly by: string
}
const checkChoice = optionsChecker<LetterChoice>('decideDeadLetter', {
  lane: requiredCheck(nonEmptyCheck),
  key: requiredCheck(nonEmptyCheck),
  decision: requiredCheck(oneOf<LetterChoice['decision']>({ retry: true, drop: true })),
  by: requiredCheck(nonEmptyCheck, 'Say who decides: the log keeps it.'),
})

/**
 * Decides about a dead letter. Of several decisions the first counts, and the answer is that one: `by` says whose it
 * was.
 */
export async function decideDeadLetter(
  sessions: LetterSessions,
  choice: LetterChoice,
): Promise<Pick<LetterDecision, 'decision' | 'by'>> {
  checkChoice(choice)
  const { lane, key, decision, by } = choice
  const letter = (await readDead(sessions, lane)).find((item) => item.key === key)
  if (letter === undefined) throw new Fault('invalid_input', NO_LETTER(lane, key))
  const { deaths } = letter
  const said: LetterDecision = { letter: key, deaths, decision, by }
  try {
    await sessions.session(lane, { stored: true }).send(JSON.stringify(said), { id: `letter:${deaths}:${key}`, by })
    return { decision, by }
  } catch (error) {
    const first = error instanceof Fault && error.code === 'id_reused' ? await findDecision(sessions, lane, said) : null
    if (first === null) throw error
    return { decision: first.decision, by: first.by }
  }
}

const NO_LETTER = (lane: string, key: string): string =>
  `Session ${lane} has no dead letter "${key}". Look at the list: it may have been decided already.`

/** The decision that came first. The queue may not have read it yet. */
async function findDecision(
  sessions: LetterSessions,
  lane: string,
  { letter, deaths }: LetterDecision,
): Promise<LetterDecision | null> {
  for (const message of (await sessions.session(lane, { stored: true }).messages()).toReversed()) {
    const found = message.role === 'user' ? readDecision(parseJson(textOf(message.parts))) : null
    if (found?.letter === letter && found.deaths === deaths) return found
  }
  return null
}
