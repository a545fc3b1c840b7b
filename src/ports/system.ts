// The ports to the machine, as types: time, chance and processes. Code gets them passed in and imports none.
import type { ProcessId } from './store.ts'

/** Time, for everything that waits. A test gives its own, so that days pass at once. */
export interface Clock {
  /** In ms. The engine's clock only goes forward. A store's is the machine's clock, which may be set. */
  now(): number
  /** Calls back once, not before `ms` from now. Returns a function that cancels it. */
  timer(ms: number, fire: () => void): () => void
}

/** Chance, for ids and for waits of uneven length. A test gives its own, so that a run can be repeated. */
export interface Random {
  /** A new id that no other call of it gives. */
  id(): string
  /** From 0 up to, but not including, 1. For jitter, never for secrets. */
  fraction(): number
}

/** The processes of this host, as far as they can be distinguished. */
export interface Processes {
  /** This process; null where that is unknown. */
  self(): ProcessId | null
  /**
   * True if it is surely gone: its number is free, or belongs to another process now. A stopped process is not gone.
   * Only for processes of this host.
   */
  isGone(other: ProcessId): boolean
}
