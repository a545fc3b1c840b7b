// What a card says of the log itself: when it began, what it is called, who opened it and how many tokens it took. Taken from the events
// as they are written, and from the whole log when an older file is brought up to date. So no writer and no file can say it otherwise.
import type { Frozen, Metadata, Part, Spent } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { Card } from '../../ports/store.ts'
import { titleOf } from '../../view/title.ts'

/** `words` are those of the first message. They are the title, unless the host gave one. */
export type Facts = Frozen<{
  created: number
  tokens: number
  title: string | null
  owner: string | null
  words: string | null
}>

export const NO_FACTS: Facts = { created: 0, tokens: 0, title: null, owner: null, words: null }

export function factsAfter(facts: Facts, event: Event): Facts {
  const { usage } = event as Spent
  if (usage) return { ...facts, tokens: facts.tokens + counted(usage.inputTokens) + counted(usage.outputTokens) }
  if (event.type === 'user.message') {
    const words = facts.words ?? titleOf(textIn(event.parts))
    return words === facts.words ? facts : { ...facts, words, title: facts.title ?? words }
  }
  if (event.type === 'session.created') return { ...facts, created: event.at, ...saidIn(event.metadata, facts) }
  // What the file said of its host is not believed.
  return event.type === 'session.imported' ? { ...facts, ...saidIn(event.metadata, facts) } : facts
}

/** A fork has the title of the session it goes on from. What a child does is said by its first message. */
export function forkedFacts(facts: Facts, created: Created, from: Facts): Facts {
  return facts.title !== null || created.parent ? facts : { ...facts, title: from.title }
}
type Created = Extract<Event, { type: 'session.created' }>

function saidIn({ title, owner }: Metadata = {}, { words }: Facts): Pick<Facts, 'title' | 'owner'> {
  const named = typeof title === 'string' ? titleOf(title) : null
  return { title: named ?? words, owner: typeof owner === 'string' && isName(owner) ? owner : null }
}

const OWNER_CHARS_MAX = 128

/** As a label has its values: one line. */
function isName(owner: string): boolean {
  return owner !== '' && owner.length <= OWNER_CHARS_MAX && !/[\p{Cc}\p{Cs}]/u.test(owner)
}

/** A message may be large: no more of it is read than a title needs. */
function textIn(parts: readonly Part[]): string {
  let text = ''
  for (const part of parts) {
    if (part.type === 'text') text += text === '' ? part.text.trimStart() : part.text
    if (text.length > TEXT_CHARS) break
  }
  return text
}
const TEXT_CHARS = 1_000

function counted(tokens: number): number {
  return Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0
}

/** As a card has them. */
export function told({ created, tokens, title, owner }: Facts): Pick<Card, 'title' | 'created' | 'owner' | 'tokens'> {
  return { created, tokens, ...(title === null ? {} : { title }), ...(owner === null ? {} : { owner }) }
}

/** Has it all words of this search? */
export function isFound(card: Findable, q: string): boolean {
  const words = wordsOf(q)
  return words.length === 0 || hasAll(findable(card), words)
}

export function hasAll(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(word))
}

/** What is searched in: the title, the agent, the id and the labels, one a line. */
export function findable({ title, agent, session, labels }: Findable): string {
  const lines = [
    title ?? '',
    agent,
    session,
    ...Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`),
  ]
  return folded(lines.join('\n'))
}
type Findable = Pick<Card, 'agent' | 'session' | 'labels'> & { readonly title?: string | null }

/** The words that are searched for. All of them must be there. */
export function wordsOf(q: string): readonly string[] {
  return folded(q)
    .split(/\s+/u)
    .filter((word) => word !== '')
}

export function folded(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
