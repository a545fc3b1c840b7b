// The words of the content router, as types: kinds of content, what is known of a text before it is looked at, and what one kind
// makes of it. Nothing of it runs.

export type Kind = 'json' | 'code' | 'log' | 'search' | 'diff' | 'html' | 'plain'

/** What is known of a text. The first of these that says something counts, in this order; `query` only ranks matches. */
export type Hint = {
  readonly kind?: Kind
  /** Such as `application/json`. */
  readonly mime?: string
  /** A file's name: its extension counts. */
  readonly path?: string
  /** The tool that returned it. */
  readonly tool?: string
  /** The command that printed it. */
  readonly command?: string
  /** What was searched for. */
  readonly query?: string
}

/** `light` only reformats. `full` also leaves out, where the original is kept. */
export type Profile = 'full' | 'light' | 'off'

export type How = { readonly lossless: boolean; readonly hint: Hint; readonly signal: AbortSignal }

/** A shorter text. `lossy`: it does not say all that the original says. */
export type Shorter = { readonly text: string; readonly lossy: boolean }

/** What one kind makes of a text; null to leave it as it is. With `lossless`, nothing lossy comes back. Time is linear in the text. */
export type Shorten = (text: string, how: How) => Shorter | null | Promise<Shorter | null>
