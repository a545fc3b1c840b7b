// Collects the citations of replies from the different shapes that providers use. Addresses are untrusted: only those
// of web pages are taken, up to a limit.
import type { Json, Source } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { isObject, asList } from './untrusted-json.ts'

const SOURCES_MAX = 256
const URL_CHARS_MAX = 2_048
const TITLE_CHARS_MAX = 300

/** One for each address, in order. An entry is an object with `url` and perhaps `title`, or the address itself. */
export function sourcesIn(found: unknown): readonly Source[] {
  const sources = new Map<string, Source>()
  for (const each of asList(found)) {
    const { url, title } = isObject(each) ? each : { url: each, title: undefined }
    if (typeof url !== 'string' || sources.has(url) || !isPage(url)) continue
    const named = typeof title === 'string' && title !== '' ? { title: title.slice(0, TITLE_CHARS_MAX) } : {}
    sources.set(url, { type: 'source', url, ...named })
    if (sources.size === SOURCES_MAX) break
  }
  return [...sources.values()]
}

/**
 * The citations of the replies among these events, and those that our tools list as `sources` in the metadata of
 * results.
 */
export function sourcesOf(events: readonly Event[]): readonly Source[] {
  return sourcesIn(events.flatMap(citationsIn))
}

/** The citations of one event. */
export function citationsIn(event: Event): readonly Json[] {
  if (event.type === 'agent.message') return event.parts.filter((part) => part.type === 'source')
  if (event.type !== 'agent.tool_result' || event.status !== 'ok' || !isObject(event.metadata)) return []
  return asList(event.metadata['sources'])
}

/** Pages link to it, so the address of a script must not pass. */
function isPage(url: string): boolean {
  return url.length <= URL_CHARS_MAX && /^https?:\/\//i.test(url) && URL.canParse(url)
}
