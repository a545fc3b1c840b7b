// What a reply cites, from the different shapes in which providers say it. Addresses come from strangers: only those of web pages
// are taken, and only so many.
import type { Json, Source } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { isObject, listOf } from './json.ts'

const SOURCES_MAX = 256
const URL_CHARS_MAX = 2_048
const TITLE_CHARS_MAX = 300

/** One for each address, in the order they came. An entry is an object with `url` and perhaps `title`, or the address itself. */
export function sourcesIn(found: unknown): readonly Source[] {
  const sources = new Map<string, Source>()
  for (const each of listOf(found)) {
    const { url, title } = isObject(each) ? each : { url: each, title: undefined }
    if (typeof url !== 'string' || sources.has(url) || !isPage(url)) continue
    const named = typeof title === 'string' && title !== '' ? { title: title.slice(0, TITLE_CHARS_MAX) } : {}
    sources.set(url, { type: 'source', url, ...named })
    if (sources.size === SOURCES_MAX) break
  }
  return [...sources.values()]
}

/** What the replies among these events cite, and what tools of ours say in the metadata `sources` of their results. */
export function sourcesOf(events: readonly Event[]): readonly Source[] {
  return sourcesIn(events.flatMap(citedBy))
}

/** Of one event. */
export function citedBy(event: Event): readonly Json[] {
  if (event.type === 'agent.message') return event.parts.filter((part) => part.type === 'source')
  if (event.type !== 'agent.tool_result' || event.status !== 'ok' || !isObject(event.metadata)) return []
  return listOf(event.metadata['sources'])
}

/** A page links to it: an address of a script must not get there. */
function isPage(url: string): boolean {
  return url.length <= URL_CHARS_MAX && /^https?:\/\//i.test(url) && URL.canParse(url)
}
