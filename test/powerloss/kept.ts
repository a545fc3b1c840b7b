// What the keeper notes of its own work: each wish before it is done, and each end once it was acknowledged.

export type KeptLine =
  /** The session leaves the store; with `archive` it is in this file before. */
  | { readonly type: 'remove'; readonly session: string; readonly archive: string | null }
  | { readonly type: 'removed'; readonly session: string }
  /** `file` has all that was acknowledged before this line. */
  | { readonly type: 'backup'; readonly file: string }
  | { readonly type: 'backed up'; readonly file: string }

export const KEPT_FILE = 'kept.jsonl'
