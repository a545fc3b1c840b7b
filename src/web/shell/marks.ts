// The sessions that somebody marked to compare: two at most, for this tab.
import { useSyncExternalStore } from 'react'
import { listOf, parsed, stringOf } from '../../view/json.ts'

const KEY = 'terret.compare'
const NONE: readonly string[] = []

let marks = kept()
const listeners = new Set<() => void>()

export function useMarks(): readonly string[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => marks,
  )
}

/** Marked twice is not marked. The address of the comparison once there are two; a third mark begins anew. */
export function mark(session: string): string | null {
  const others = marks.length === 2 ? NONE : marks.filter((each) => each !== session)
  set(marks.length === 1 && others.length === 0 ? NONE : [...others, session])
  const [a, b] = marks
  if (a === undefined || b === undefined) return null
  return `/compare?${new URLSearchParams({ a, b }).toString()}`
}

export function unmark(): void {
  set(NONE)
}

function set(next: readonly string[]): void {
  marks = next
  sessionStorage.setItem(KEY, JSON.stringify(marks))
  for (const listener of listeners) listener()
}

function kept(): readonly string[] {
  return listOf(parsed(sessionStorage.getItem(KEY) ?? ''))
    .map(stringOf)
    .filter((each) => each !== '')
    .slice(0, 2)
}
