// What a person chose for this browser: theme, density, notifications. Kept here, and the same in all its tabs.
import { useSyncExternalStore } from 'react'
import { isObject, parsed } from '../../view/json.ts'

export type Settings = {
  readonly theme: 'auto' | 'light' | 'dark'
  readonly density: 'roomy' | 'dense'
  readonly notifies: boolean
}

const KEY = 'terret.settings'
const DEFAULTS: Settings = { theme: 'auto', density: 'roomy', notifies: false }

/** A page in a frame without an origin, as those that show attached files have, may keep nothing. */
const keeps = mayKeep()
let current = kept()
const listeners = new Set<() => void>()

export function useSettings(): Settings {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => current,
  )
}

export function change(some: Partial<Settings>): void {
  current = { ...current, ...some }
  if (keeps) localStorage.setItem(KEY, JSON.stringify(current))
  apply()
}

/** Once, before the first thing is drawn. */
export function applySettings(): void {
  apply()
  window.addEventListener('storage', ({ key }) => {
    if (key !== KEY) return
    current = kept()
    apply()
  })
}

function apply(): void {
  const { dataset } = document.documentElement
  dataset['theme'] = current.theme
  dataset['density'] = current.density
  for (const listener of listeners) listener()
}

/** What was kept may be of another version. */
function kept(): Settings {
  const found = parsed((keeps ? localStorage.getItem(KEY) : null) ?? '')
  if (!isObject(found)) return DEFAULTS
  const { theme, density, notifies } = found
  return {
    theme: theme === 'light' || theme === 'dark' ? theme : 'auto',
    density: density === 'dense' ? 'dense' : 'roomy',
    notifies: notifies === true,
  }
}

function mayKeep(): boolean {
  try {
    return localStorage.length >= 0
  } catch {
    return false
  }
}
