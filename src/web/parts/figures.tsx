// Numbers in readable form: money, tokens, ages, durations. Ages are computed with the server's clock.
import { memo, type ReactNode } from 'react'
import { durationText } from '../../view/tree-rows.ts'
import { useNow } from '../data/server-clock.ts'

// Created once: creating a formatter takes longer than rendering its row.
const DATES = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hour12: false })
const createMoneyFormat = (digits: number): Intl.NumberFormat =>
  new Intl.NumberFormat('en', {
    style: 'currency',
    currency: 'USD',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
const [SMALL, LARGE] = [createMoneyFormat(4), createMoneyFormat(2)]

/** Dollars: small amounts with four decimals, large ones with two. */
export const Money = memo(function Money({ usd }: { readonly usd: number }) {
  return <span className={usd === 0 ? 'money none' : 'money'}>{moneyText(usd)}</span>
})

export function moneyText(usd: number): string {
  return (Math.abs(usd) >= 100 ? LARGE : SMALL).format(usd)
}

/** In this browser's time zone. Imported logs may contain any number. */
export function momentText(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? 'not a date' : DATES.format(date)
}

/** `1.3k`, `12.4M`. */
export const TokenCount = memo(function Tokens({ count }: { readonly count: number }) {
  return <span title={`${count.toLocaleString('en')} tokens`}>{tokensText(count)}</span>
})

/** `1.2 GB`. */
export function bytesText(bytes: number): string {
  const at = Math.min(SIZES.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return `${(bytes / 1_000 ** at).toFixed(at === 0 ? 0 : 1)} ${SIZES[at] ?? 'B'}`
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'] as const

function tokensText(count: number): string {
  if (count < 1_000) return String(count)
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`
}

/** The time since a moment, or until it. */
export const Ago = memo(function Ago({ at }: { readonly at: number }) {
  const now = useNow()
  return (
    <time dateTime={isoOf(at)} title={isoOf(at)}>
      {agoText(at, now)}
    </time>
  )
})

/** A moment in this browser's time zone. */
export const MomentText = memo(function MomentText({ at }: { readonly at: number }) {
  return (
    <time dateTime={isoOf(at)} title={isoOf(at)}>
      {momentText(at)}
    </time>
  )
})

function agoText(at: number, now: number): string {
  const ms = now - at
  if (Math.abs(ms) < 2_000) return 'now'
  return ms > 0 ? spanText(ms) : `in ${spanText(-ms)}`
}

const STEPS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

function spanText(ms: number): string {
  const [step, unit] = STEPS.find(([length]) => ms >= length) ?? [1_000, 's']
  return `${Math.floor(ms / step)} ${unit}`
}

export const TimeTaken = memo(function Took({ ms }: { readonly ms: number }) {
  return <span>{timeTakenText(ms)}</span>
})

/** `5 ms`, `2.1 s`, `3m 05s`. */
export function timeTakenText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  return ms < 59_950 ? `${(ms / 1_000).toFixed(1)} s` : durationText(ms)
}

/** A log may contain any number, and dates have limits. */
function isoOf(at: number): string {
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : 'not a date'
}

/** A named figure, inside a `dl`. */
export function Figure({ name, children, note }: FigureProps) {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd>{children}</dd>
      {note === undefined ? null : <dd className="figure-note">{note}</dd>}
    </div>
  )
}

type FigureProps = { readonly name: string; readonly children: ReactNode; readonly note?: ReactNode }
