// The person's settings for this browser: theme, density, notifications. They are stored here and shared by all tabs.
import { useSyncExternalStore } from 'react'
import { isObject, parseJson } from '../../view/untrusted-json.ts'

export type BrowserSettings = {
  readonly theme: 'auto' | 'light' | 'dark'
  readonly density: 'roomy' | 'dense'
  readonly notifies: boolean
}

const KEY = 'terret.settings'
const DEFAULTS: BrowserSettings = { theme: 'auto', density: 'roomy', notifies: false }

/** A page in a frame without an origin, such as a preview of an attached file, has no storage. */
const keeps = canUseStorage()
let current = readStoredSettings()
const listeners = new Set<() => void>()

export function useSettings(): BrowserSettings {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => current,
  )
}

export function changeSettings(some: Partial<BrowserSettings>): void {
  current = { ...current, ...some }
  if (keeps) localStorage.setItem(KEY, JSON.stringify(current))
  showSettings()
}

/** Call it once, before the first rendering. */
export function applySettings(): void {
  showSettings()
  window.addEventListener('storage', ({ key }) => {
    if (key !== KEY) return
    current = readStoredSettings()
    showSettings()
  })
}

function showSettings(): void {
  const { dataset } = document.documentElement
  dataset['theme'] = current.theme
  dataset['density'] = current.density
  for (const listener of listeners) listener()
}

/** Stored settings may come from another version. */
function readStoredSettings(): BrowserSettings {
  const found = parseJson((keeps ? localStorage.getItem(KEY) : null) ?? '')
  if (!isObject(found)) return DEFAULTS
  const { theme, density, notifies } = found
  return {
    theme: theme === 'light' || theme === 'dark' ? theme : 'auto',
    density: density === 'dense' ? 'dense' : 'roomy',
    notifies: notifies === true,
  }
}

function canUseStorage(): boolean {
  try {
    return localStorage.length >= 0
  } catch {
    return false
  }
}
