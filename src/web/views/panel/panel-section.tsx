// A titled section of the panel, and rows of facts in it.
import type { ReactNode } from 'react'
import { momentText } from '../../parts/figures.tsx'

export function PanelSection({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <section className="side-part">
      <h3>{name}</h3>
      {children}
    </section>
  )
}

/** Names on the left, values on the right. Rows with null are left out. */
export function FactRows({ rows }: { readonly rows: readonly (readonly [string, ReactNode])[] }) {
  const known = rows.filter(([, value]) => value !== null)
  if (known.length === 0) return null
  return (
    <dl className="side-facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** A moment in this browser's time zone, to the millisecond. */
export function MomentTime({ at }: { readonly at: number }) {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return <span>not a date</span>
  return (
    <time dateTime={date.toISOString()} title={date.toISOString()}>
      {momentText(at)}
      <span className="dim">.{String(date.getMilliseconds()).padStart(3, '0')}</span>
    </time>
  )
}
