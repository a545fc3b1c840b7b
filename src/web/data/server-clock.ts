// The server's clock, taken from its answers, because the clock of this machine may be a day off. Ages are computed
// with it.
import { useSyncExternalStore } from 'react'
import { isObject } from '../../view/untrusted-json.ts'

const TICK_MS = 1_000

/** The server's clock minus this machine's clock. */
let aheadMs = 0
let nowMs = Date.now()
const listeners = new Set<() => void>()
let timer: number | null = null

/** Takes `now` of an answer, if it has one. */
export function setServerNow(answer: unknown): void {
  const now = isObject(answer) ? answer['now'] : undefined
  if (typeof now !== 'number' || !Number.isFinite(now)) return
  aheadMs = now - Date.now()
  tick()
}

export function serverNow(): number {
  return Date.now() + aheadMs
}

/** Ticks once a second while a component uses it. */
export function useNow(): number {
  return useSyncExternalStore(subscribeToTicks, () => nowMs)
}

function tick(): void {
  nowMs = serverNow()
  for (const listener of listeners) listener()
}

function subscribeToTicks(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= window.setInterval(tick, TICK_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0 || timer === null) return
    clearInterval(timer)
    timer = null
  }
}
