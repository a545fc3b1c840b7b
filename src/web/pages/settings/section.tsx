// A part of the settings: what it is about beside what can be changed.
import type { ReactNode } from 'react'

export type SectionProps = { readonly title: string; readonly about: string; readonly children: ReactNode }

export function Section({ title, about, children }: SectionProps) {
  return (
    <section className="setting">
      <header>
        <h2>{title}</h2>
        <p className="dim">{about}</p>
      </header>
      <div className="panel">{children}</div>
    </section>
  )
}
