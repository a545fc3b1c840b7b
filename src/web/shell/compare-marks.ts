// The sessions marked for comparison: at most two, for this tab.
import { useSyncExternalStore } from 'react'
import { asList, parseJson, asString } from '../../view/untrusted-json.ts'

const KEY = 'terret.compare'
const NONE: readonly string[] = []

let marks = readStoredMarks()
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

/**
 * Marking a session again removes its mark. Returns the comparison's address once there are two marks; a third mark
 * starts over.
 */
export function toggleMark(session: string): string | null {
  const others = marks.length === 2 ? NONE : marks.filter((each) => each !== session)
  setMarks(marks.length === 1 && others.length === 0 ? NONE : [...others, session])
  const [a, b] = marks
  if (a === undefined || b === undefined) return null
  return `/compare?${new URLSearchParams({ a, b }).toString()}`
}

export function clearMarks(): void {
  setMarks(NONE)
}

function setMarks(next: readonly string[]): void {
  marks = next
  sessionStorage.setItem(KEY, JSON.stringify(marks))
  for (const listener of listeners) listener()
}

function readStoredMarks(): readonly string[] {
  return asList(parseJson(sessionStorage.getItem(KEY) ?? ''))
    .map(asString)
    .filter((each) => each !== '')
    .slice(0, 2)
}
