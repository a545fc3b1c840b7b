// The doors to the machine, as types: time and chance. Code gets them handed in and imports none.
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
