// What the next request of a session holds, as lines: a bar, a table by source, and what was cut and missed before. It decides nothing.
import type { ContextReport, ContextSource } from '../../context/report.ts'
import { type CacheMiss, type CompactionRecord, missText, SOURCE_NAMES } from '../../view/context.ts'
import { counted, percent } from '../../view/text.ts'
import { usdText } from '../../view/usd.ts'
import { oneLine } from '../../view/clean.ts'
import { clippedToWidth, widthOf } from './text.ts'

const BAR = 24
const NAME_COLUMNS = 36
/** Of each group. Names of tools come from servers, and there may be many. */
const NAMES_SHOWN = 12
/** Of each kind of event: the last ones. */
const EVENTS_SHOWN = 10

export function contextLines(report: ContextReport): readonly string[] {
  const { tokens, window, model, prefix, cache } = report
  const of =
    window === null ? '; how many its model takes is not known' : ` of ${number(window)}, ${percent(tokens, window)}`
  return [
    ...(model === null ? [] : [`Model     ${oneLine(model)}`]),
    `Context   ${report.counted ? '' : 'about '}${number(tokens)} tokens${of}`,
    ...(window === null ? [] : [`          ${bar(tokens / window, BAR)}`]),
    `Compacts  ${whenText(report)}`,
    ...(prefix === null
      ? []
      : [`Prefix    made by event ${prefix.since}${prefix.made > 1 ? `, the last of ${prefix.made}` : ''}`]),
    ...(cache === null
      ? []
      : [
          `Cached    ${number(cache.cachedTokens)} of ${number(cache.inputTokens)} tokens of the last request, event ${cache.seq}`,
        ]),
    ...compactionLines(report.compactions),
    ...missLines(report.misses),
    '',
    ...tableLines(report),
    '',
    report.counted
      ? 'The sum is as the provider counted it, and what came since. Shares: by size.'
      : 'No provider has counted yet: all of it is estimated from characters.',
  ]
}

function whenText({ compactsAt, ends, off, window }: ContextReport): string {
  if (ends)
    return compactsAt === null ? 'never: it is off' : `never: it is off, and runs end at ${number(compactsAt)} tokens`
  if (off) return 'not any more: three summaries in a row failed'
  if (compactsAt === null || window === null)
    return 'only when the provider refuses a request: set compaction.windowTokens'
  return `from ${number(compactsAt)} tokens on, ${percent(compactsAt, window)}`
}

/** Each group with its sum, and below it what it is made of, if that has names. */
function tableLines({ sources, tokens }: ContextReport): readonly string[] {
  const kinds = [...new Set(sources.map(({ source }) => source))]
  const rows = kinds.flatMap((kind) => {
    const all = sources.filter(({ source }) => source === kind)
    const whole = row(`${SOURCE_NAMES[kind]}${countText(all)}`, sum(all, 'tokens'), tokens)
    const named = all.filter(({ name }) => name !== undefined).toSorted((a, b) => b.tokens - a.tokens)
    const some = named.slice(0, NAMES_SHOWN)
    const rest = named.slice(NAMES_SHOWN)
    return [
      whole,
      ...some.map(({ name = '', count, tokens: own }) =>
        row(`  ${oneLine(name, 60)}${times(kind, count)}`, own, tokens),
      ),
      ...(rest.length === 0 ? [] : [row(`  and ${rest.length} more`, sum(rest, 'tokens'), tokens)]),
    ]
  })
  return ['The next request holds', ...rows, row('in all', tokens, tokens)]
}

function countText(all: readonly ContextSource[]): string {
  const [first] = all
  return first?.source === 'instructions' || first?.source === 'summary' ? '' : ` (${sum(all, 'count')})`
}

function times(kind: ContextSource['source'], count: number): string {
  return kind === 'tool' || count === 1 ? '' : ` (${count})`
}

function sum(all: readonly ContextSource[], what: 'tokens' | 'count'): number {
  return all.reduce((total, each) => total + each[what], 0)
}

function row(name: string, tokens: number, all: number): string {
  const shown = clippedToWidth(name, NAME_COLUMNS)
  const padded = `  ${shown}${' '.repeat(Math.max(0, NAME_COLUMNS - widthOf(shown)))}`
  const share = tokens / Math.max(1, all)
  const drawn = share < 1 ? bar(share, BAR, '') : ''
  return `${padded} ${number(tokens).padStart(9)} ${percent(tokens, all).padStart(5)}  ${drawn}`.trimEnd()
}

/** What took something out of the requests, or failed to. The last ones; `inspect --json` has all of them. */
export function compactionLines(all: readonly CompactionRecord[]): readonly string[] {
  return lastOf(all, 'Compacted', ({ seq, messages, results, before, after, cost, failed }) => {
    const size = before === null || after === null ? '' : `, ${number(before)} → ${number(after)} tokens`
    const paid = cost > 0 ? `, ${usdText(cost)}` : ''
    if (failed !== undefined) return `Failed    event ${seq}: not compacted${paid}: ${oneLine(failed, 400)}`
    if (messages > 0) return `Cut       event ${seq}: ${counted(messages, 'message')} summed up${size}${paid}`
    if (results > 0) return `Cleared   event ${seq}: ${counted(results, 'old result')}${size}${paid}`
    return `Compacted event ${seq}: nothing was cut${size}${paid}`
  })
}

const COLUMNS = 80

/** Misses of the provider's prompt cache. */
export function missLines(all: readonly CacheMiss[]): readonly string[] {
  return lastOf(all, 'Missed', ({ seq, tokens, cost, ...miss }) => {
    const why = `Missed    event ${seq}: ${oneLine(missText(miss))},`
    const price = `${tokens} tokens read again${cost > 0 ? `, ${usdText(cost)}` : ''}`
    return why.length + price.length < COLUMNS ? `${why} ${price}` : [why, `          ${price}`]
  })
}

function lastOf<T>(all: readonly T[], name: string, line: (each: T) => string | readonly string[]): readonly string[] {
  const shown = all.slice(-EVENTS_SHOWN)
  const more = all.length - shown.length
  return [...(more > 0 ? [`${name.padEnd(9)} ${counted(more, 'earlier time')}`] : []), ...shown.flatMap(line)]
}

function bar(share: number, columns: number, empty = '░'): string {
  const full = Math.min(columns, Math.round(share * columns))
  return '█'.repeat(full) + empty.repeat(columns - full)
}

function number(value: number): string {
  return value.toLocaleString('en')
}
