// Messages about a provider that does not answer or a run that cannot begin, and the parser of `--patience`.
import type { StreamEvent } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const PATIENCE_MS_MAX = 30 * 24 * 3_600_000

/** Longer than any real wait: a person in a chat sees the reason for the wait, and can leave. */
export const WAITS_MS = 2 ** 40

/** Parses `90s`, `5m`, `1h`, or `0` for one try. */
export function parsePatienceMs(text: string): number {
  const [, amount = '', unit = ''] = /^(\d{1,9})(ms|s|m|h)?$/.exec(text.trim()) ?? []
  const ms = Number(amount) * (UNITS[unit] ?? 0)
  if (amount !== '' && (unit !== '' || Number(amount) === 0) && ms <= PATIENCE_MS_MAX) return ms
  throw new CliError(EXIT.usage, `--patience must be a time of at most 30 days, such as 90s, 5m or 1h, not "${text}".`)
}

/** Why there was no answer, and when the next try is. Null if there is no next try. */
export function outageText(event: FailedEvent | DeferredEvent): string | null {
  if (event.type === 'run.deferred')
    return `The run cannot begin (${oneLine(event.message, 300)}). Trying again ${inSeconds(event.retryAt - event.at)}.`
  const { class: kind, message, at, retryAt, partial } = event
  if (retryAt === undefined) return null
  const again = inSeconds(retryAt - at)
  const why = `${kind}: ${oneLine(message, 300)}`
  return partial === undefined
    ? `Provider unavailable (${why}). Trying again ${again}.`
    : `The answer was cut (${why}). It starts again ${again}.`
}
type FailedEvent = Extract<StreamEvent, { type: 'model.failed' }>
type DeferredEvent = Extract<StreamEvent, { type: 'run.deferred' }>

function inSeconds(ms: number): string {
  return `in ${Math.max(1, Math.round(ms / 1_000))} s`
}

/** The same from a card, for a session that is not followed. */
export function outageLine({ outage, due, status }: Pick<Card, 'outage' | 'due' | 'status'>): string | null {
  if (!outage) return null
  const tries = `${outage.tries} ${outage.tries === 1 ? 'try' : 'tries'}`
  const again = status === 'rescheduling' && due !== null ? `, next at ${new Date(due).toISOString()}` : ''
  const what = outage.begins === false ? 'The run cannot begin' : 'Provider unavailable'
  return `${what} (${oneLine(outage.reason, 300)}): ${tries}${again}.`
}
