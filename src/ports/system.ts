// The doors to the machine, as types: time, chance and processes. Code gets them handed in and imports none.
import type { ProcessId } from './store.ts'

export interface Clock {
  /** In ms. The engine's clock only goes forward. A store's is the machine's clock, which may be set. */
  now(): number
  /** Calls back once, not before `ms` from now. Returns its cancel. */
  timer(ms: number, fire: () => void): () => void
}

export interface Random {
  id(): string
  /** From 0 up to, but not including, 1. For jitter, never for secrets. */
  fraction(): number
}

/** The processes of this host, as far as they can be told apart. */
export interface Processes {
  /** This one; null where it cannot be said. */
  self(): ProcessId | null
  /** Surely gone: no process of this host has that number, or another one has it by now. One that is stopped is there. Only asked of this host. */
  isGone(other: ProcessId): boolean
}
