// Builds the background text for a run: the state of the session, what was learned, and what the user keeps in
// MEMORY.md. Only whole entries within a budget, and each entry once while it is still in the conversation. Pure.
import { eventId, clipText } from '../view/shown-text.ts'
import {
  type Citation,
  citedLine,
  entryIdentity,
  episodeLine,
  LABEL,
  plainLine,
  type RecalledEpisode,
} from './citations.ts'
import { relevance, significantWords } from './relevance.ts'
import type { SessionView } from './session-view.ts'

const STATE = 'Where this session stood before this run:'
const LEARNED = 'Learned in earlier sessions:'
const RUNS = 'Earlier runs about this:'
const KEPT = 'Kept by the user (MEMORY.md):'
const STATE_CHARS = 1_500
const EXCERPT_CHARS = 400

export type Background = {
  readonly prompt: string
  /** Null: it could not be read in time. */
  readonly view: SessionView | null
  readonly learned: readonly Citation[]
  readonly episodes?: readonly RecalledEpisode[]
  /** The content of MEMORY.md. */
  readonly kept: string
}

/** At most `charsMax` characters; empty if there is nothing to say. */
export function backgroundOf({ prompt, view, learned, episodes = [], kept }: Background, charsMax: number): string {
  let left = charsMax - LABEL.length
  const fitting = (title: string, entries: readonly string[], most = left): readonly string[] => {
    const taken: string[] = []
    let room = Math.min(left, most) - title.length - 1
    for (const entry of entries) {
      if (entry.length + 1 > room) continue
      room -= entry.length + 1
      taken.push(entry)
    }
    if (taken.length === 0) return []
    const lines = [title, ...taken]
    left -= lines.reduce((sum, line) => sum + line.length + 1, 0)
    return lines
  }
  const told = view?.recalled ?? new Set<string>()
  const isNew = (entry: string): boolean => !told.has(entryIdentity(entry))
  const entries = entriesIn(kept)
  const own = new Set(entries.map(entryIdentity))
  const state = view?.isCut ? stateLines(view) : []
  const news = learned.map(citedLine).filter((entry) => isNew(entry) && !own.has(entryIdentity(entry)))
  const runs = episodes.map(episodeLine).filter(isNew)
  const sections = [fitting(STATE, state, STATE_CHARS), fitting(LEARNED, news), fitting(RUNS, runs)]
  // If not all entries fit, those nearest to the prompt are chosen; the chosen ones keep their own order.
  const words = significantWords(prompt)
  const wanted = entries.filter(isNew)
  const near = new Map(wanted.map((entry) => [entry, relevance(words, { title: entry, detail: '' })]))
  const [title, ...taken] = fitting(
    KEPT,
    wanted.toSorted((a, b) => (near.get(b) ?? 0) - (near.get(a) ?? 0)),
  )
  if (title !== undefined) sections.push([title, ...wanted.filter((entry) => taken.includes(entry))])
  const lines = sections.flat()
  return lines.length === 0 ? '' : [LABEL, ...lines].join('\n')
}

/** Only the parts that the conversation no longer shows. They change, so each run gets them anew. */
function stateLines({ session, summary, response, focus, wakes, waiting, state }: SessionView): readonly string[] {
  const { last } = state
  const asked = focus.join(' ').trim()
  const lines = [
    ...(summary ? [`[${eventId(session, summary.seq)}] summary: ${summary.text}`] : []),
    ...(last !== null && last.type !== 'completed' ? [`The last run ended as ${last.type}.`] : []),
    ...(asked === '' ? [] : [`The last run was about: ${clipText(asked, EXCERPT_CHARS)}`]),
    ...(response ? [`[${eventId(session, response.seq)}] last answer: ${response.text}`] : []),
    ...waiting.map(({ call, tool, needs }) => `Call ${call} of ${tool} waits for ${needs}.`),
    ...wakes.map(({ due, reason }) => `To look at ${new Date(due).toISOString()}: ${reason}`),
  ]
  return lines.map((line) => plainLine(`* ${clipText(line, EXCERPT_CHARS)}`))
}

const MARK = /<!-- (\S+) -->$/

/** Each bullet or paragraph is an entry. Headings are left out, and the mark of a promoted learning is its id. */
function entriesIn(kept: string): readonly string[] {
  const entries: string[] = []
  let open = false
  for (const line of kept.split(/\r\n|\r|\n/)) {
    const text = line.trim()
    const begins = !open || /^([-*+]|\d+[.)])\s/.test(text)
    if (text === '' || text.startsWith('#')) open = false
    else if (begins) {
      entries.push(text)
      open = true
    } else entries.push(`${entries.pop() ?? ''} ${text}`)
  }
  return [...new Set(entries.map(entryOf))]
}

function entryOf(text: string): string {
  const id = idIn(MARK.exec(text)?.[1])
  const said = text.replace(MARK, '').replace(/^([-*+]|\d+[.)])\s+/, '')
  return plainLine(id === null ? `- ${said}` : `- [${id}] ${said}`)
}

function idIn(mark: string | undefined): string | null {
  try {
    return mark === undefined ? null : decodeURIComponent(mark)
  } catch {
    return null
  }
}
