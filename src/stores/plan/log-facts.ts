// The fields of a card that come from the log itself: creation time, title, owner and tokens. They are taken from the
// events as these are written, and from the whole log when an older file is updated. So no writer and no file can set
// other values.
import type { Frozen, Metadata, Part, Usage } from '../../kernel/content.ts'
import type { Event, EventOf } from '../../kernel/event.ts'
import type { Card } from '../../ports/store.ts'
import { titleFromText } from '../../view/title.ts'

/** What a card has from the log itself. */
export type LogFacts = Frozen<{
  /** The time of the first event, in ms since 1970. */
  created: number
  /** Input and output tokens of all model calls so far. */
  tokens: number
  /** What the session was renamed to, or else the title that the host set, or else `words`. Null before all of them. */
  title: string | null
  /** The owner that the host named. Null if it named none. */
  owner: string | null
  /**
   * The title that the log gives without the host's data: what the session was renamed to, or else the first words of the
   * first message. Null before both.
   */
  words: string | null
}>

export const NO_FACTS: LogFacts = { created: 0, tokens: 0, title: null, owner: null, words: null }

export function factsAfter(facts: LogFacts, event: Event): LogFacts {
  const { usage } = event as { readonly usage?: Usage }
  if (usage) return { ...facts, tokens: facts.tokens + tokenCount(usage.inputTokens) + tokenCount(usage.outputTokens) }
  if (event.type === 'user.message') {
    const words = facts.words ?? titleFromText(titleSource(event.parts))
    return words === facts.words ? facts : { ...facts, words, title: facts.title ?? words }
  }
  if (event.type === 'user.rename') {
    const title = titleFromText(event.title)
    return title === null ? facts : { ...facts, words: title, title }
  }
  if (event.type === 'session.created') return { ...facts, created: event.at, ...hostFacts(event.metadata, facts) }
  // The host data of an imported file is not trusted.
  return event.type === 'session.imported' ? { ...facts, ...hostFacts(event.metadata, facts) } : facts
}

/** A fork takes the title of its origin. A child's title is its first message. */
export function factsOfFork(facts: LogFacts, created: EventOf<'session.created'>, from: LogFacts): LogFacts {
  return facts.title !== null || created.parent ? facts : { ...facts, title: from.title }
}

function hostFacts({ title, owner }: Metadata = {}, { words }: LogFacts): Pick<LogFacts, 'title' | 'owner'> {
  const named = typeof title === 'string' ? titleFromText(title) : null
  return { title: named ?? words, owner: typeof owner === 'string' && isOwnerName(owner) ? owner : null }
}

const OWNER_CHARS_MAX = 128

/** The same rule as for the values of labels: one line. */
function isOwnerName(owner: string): boolean {
  return owner !== '' && owner.length <= OWNER_CHARS_MAX && !/[\p{Cc}\p{Cs}]/u.test(owner)
}

/** A message may be large; only as much as a title needs is read. */
function titleSource(parts: readonly Part[]): string {
  let text = ''
  for (const part of parts) {
    if (part.type === 'text') text += text === '' ? part.text.trimStart() : part.text
    if (text.length > TEXT_CHARS) break
  }
  return text
}
const TEXT_CHARS = 1_000

function tokenCount(tokens: number): number {
  return Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0
}

/** The fields as they stand on a card. */
export function cardFacts({
  created,
  tokens,
  title,
  owner,
}: LogFacts): Pick<Card, 'title' | 'created' | 'owner' | 'tokens'> {
  return { created, tokens, ...(title === null ? {} : { title }), ...(owner === null ? {} : { owner }) }
}

/** Whether the card contains all words of this search. */
export function cardMatchesSearch(card: SearchableCard, q: string): boolean {
  const words = searchWords(q)
  return words.length === 0 || hasAllWords(searchableText(card), words)
}

export function hasAllWords(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(word))
}

/** The text that is searched: the title, the agent, the id and the labels, one on each line. */
export function searchableText({ title, agent, session, labels }: SearchableCard): string {
  const lines = [
    title ?? '',
    agent,
    session,
    ...Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`),
  ]
  return foldCase(lines.join('\n'))
}
type SearchableCard = Pick<Card, 'agent' | 'session' | 'labels'> & { readonly title?: string | null }

/** The words of a search. All of them must be found. */
export function searchWords(q: string): readonly string[] {
  return foldCase(q)
    .split(/\s+/u)
    .filter((word) => word !== '')
}

export function foldCase(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
