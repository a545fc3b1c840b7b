// A section of the settings: a description beside its controls.
import type { ReactNode } from 'react'

export type SettingsSectionProps = { readonly title: string; readonly about: string; readonly children: ReactNode }

export function SettingsSection({ title, about, children }: SettingsSectionProps) {
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
