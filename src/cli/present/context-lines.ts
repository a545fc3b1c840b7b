// The content of a session's next request as lines: a bar, a table by source, and past compactions and cache misses. It
// decides nothing.
import type { ContextReport, ContextSource } from '../../context/context-report.ts'
import { type CacheMiss, type CompactionRecord, missText, SOURCE_NAMES } from '../../view/request-context.ts'
import { countNoun, percentText } from '../../view/shown-text.ts'
import { usdText } from '../../view/usd.ts'
import { oneLine } from '../../view/clean.ts'
import { clipToWidth, widthOf } from './terminal-text.ts'

const BAR = 24
const NAME_COLUMNS = 36
/** The most names shown in each group. Names of tools come from servers, and there may be many. */
const NAMES_SHOWN = 12
/** The most events shown of each kind, the last ones. */
const EVENTS_SHOWN = 10

export function contextLines(report: ContextReport): readonly string[] {
  const { tokens, window, model, prefix, cache } = report
  const of =
    window === null
      ? '; how many its model takes is not known'
      : ` of ${numberText(window)}, ${percentText(tokens, window)}`
  return [
    ...(model === null ? [] : [`Model     ${oneLine(model)}`]),
    `Context   ${report.counted ? '' : 'about '}${numberText(tokens)} tokens${of}`,
    ...(window === null ? [] : [`          ${drawBar(tokens / window, BAR)}`]),
    `Compacts  ${whenText(report)}`,
    ...(prefix === null
      ? []
      : [`Prefix    made by event ${prefix.since}${prefix.made > 1 ? `, the last of ${prefix.made}` : ''}`]),
    ...(cache === null
      ? []
      : [
          `Cached    ${numberText(cache.cachedTokens)} of ${numberText(cache.inputTokens)} tokens of the last request, event ${cache.seq}`,
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
    return compactsAt === null
      ? 'never: it is off'
      : `never: it is off, and runs end at ${numberText(compactsAt)} tokens`
  if (off) return 'not any more: three summaries in a row failed'
  if (compactsAt === null || window === null)
    return 'only when the provider refuses: set context.compaction.windowTokens'
  return `from ${numberText(compactsAt)} tokens on, ${percentText(compactsAt, window)}`
}

/** Each group with its sum and, below it, its named parts. */
function tableLines({ sources, tokens }: ContextReport): readonly string[] {
  const kinds = [...new Set(sources.map(({ source }) => source))]
  const rows = kinds.flatMap((kind) => {
    const all = sources.filter(({ source }) => source === kind)
    const whole = sourceRow(`${SOURCE_NAMES[kind]}${countText(all)}`, sum(all, 'tokens'), tokens)
    const named = all.filter(({ name }) => name !== undefined).toSorted((a, b) => b.tokens - a.tokens)
    const some = named.slice(0, NAMES_SHOWN)
    const rest = named.slice(NAMES_SHOWN)
    return [
      whole,
      ...some.map(({ name = '', count, tokens: own }) =>
        sourceRow(`  ${oneLine(name, 60)}${countSuffix(kind, count)}`, own, tokens),
      ),
      ...(rest.length === 0 ? [] : [sourceRow(`  and ${rest.length} more`, sum(rest, 'tokens'), tokens)]),
    ]
  })
  return ['The next request holds', ...rows, sourceRow('in all', tokens, tokens)]
}

function countText(all: readonly ContextSource[]): string {
  const [first] = all
  return first?.source === 'instructions' || first?.source === 'summary' ? '' : ` (${sum(all, 'count')})`
}

function countSuffix(kind: ContextSource['source'], count: number): string {
  return kind === 'tool' || count === 1 ? '' : ` (${count})`
}

function sum(all: readonly ContextSource[], what: 'tokens' | 'count'): number {
  return all.reduce((total, each) => total + each[what], 0)
}

function sourceRow(name: string, tokens: number, all: number): string {
  const shown = clipToWidth(name, NAME_COLUMNS)
  const padded = `  ${shown}${' '.repeat(Math.max(0, NAME_COLUMNS - widthOf(shown)))}`
  const share = tokens / Math.max(1, all)
  const drawn = share < 1 ? drawBar(share, BAR, '') : ''
  return `${padded} ${numberText(tokens).padStart(9)} ${percentText(tokens, all).padStart(5)}  ${drawn}`.trimEnd()
}

/** Compactions that shortened the requests or failed. Only the last ones; `inspect --json` has all of them. */
export function compactionLines(all: readonly CompactionRecord[]): readonly string[] {
  return lastEntries(all, 'Compacted', ({ seq, messages, results, before, after, cost, failed }) => {
    const size = before === null || after === null ? '' : `, ${numberText(before)} → ${numberText(after)} tokens`
    const paid = cost > 0 ? `, ${usdText(cost)}` : ''
    if (failed !== undefined) return `Failed    event ${seq}: not compacted${paid}: ${oneLine(failed, 400)}`
    if (messages > 0) return `Cut       event ${seq}: ${countNoun(messages, 'message')} summed up${size}${paid}`
    if (results > 0) return `Cleared   event ${seq}: ${countNoun(results, 'old result')}${size}${paid}`
    return `Compacted event ${seq}: nothing was cut${size}${paid}`
  })
}

const COLUMNS = 80

/** Misses of the provider's prompt cache. */
export function missLines(all: readonly CacheMiss[]): readonly string[] {
  return lastEntries(all, 'Missed', ({ seq, tokens, cost, ...miss }) => {
    const why = `Missed    event ${seq}: ${oneLine(missText(miss))},`
    const price = `${tokens} tokens read again${cost > 0 ? `, ${usdText(cost)}` : ''}`
    return why.length + price.length < COLUMNS ? `${why} ${price}` : [why, `          ${price}`]
  })
}

function lastEntries<T>(
  all: readonly T[],
  name: string,
  line: (each: T) => string | readonly string[],
): readonly string[] {
  const shown = all.slice(-EVENTS_SHOWN)
  const more = all.length - shown.length
  return [...(more > 0 ? [`${name.padEnd(9)} ${countNoun(more, 'earlier time')}`] : []), ...shown.flatMap(line)]
}

function drawBar(share: number, columns: number, empty = '░'): string {
  const full = Math.min(columns, Math.round(share * columns))
  return '█'.repeat(full) + empty.repeat(columns - full)
}

function numberText(value: number): string {
  return value.toLocaleString('en')
}
