// The types of the content router: kinds of content, what is known of a text beforehand, and the result of a shortener.
// Types only.

/** What a text looks like, which decides how it is made shorter. */
export type TextKind = 'json' | 'code' | 'log' | 'search' | 'diff' | 'html' | 'plain'

/**
 * Facts about a text, known beforehand. The first field that decides the kind counts, in this order; `query` only ranks
 * matches.
 */
export type TextHint = {
  /** The kind itself, if it is known: nothing is detected then. */
  readonly kind?: TextKind
  /** A MIME type such as `application/json`. */
  readonly mime?: string
  /** The name of a file: its extension counts. */
  readonly path?: string
  /** The tool that returned it. */
  readonly tool?: string
  /** The command that printed it. */
  readonly command?: string
  /** The words that were searched for. */
  readonly query?: string
}

/** `light` only reformats. `full` also leaves content out, if the original is kept. */
export type CompressProfile = 'full' | 'light' | 'off'

export type ShortenOptions = { readonly lossless: boolean; readonly hint: TextHint; readonly signal: AbortSignal }

/** A shorter text. `lossy`: it has less content than the original. */
export type ShortenedText = { readonly text: string; readonly lossy: boolean }

/**
 * Shortens a text of one kind; null leaves it as it is. With `lossless`, no lossy result comes back. Time is linear in
 * the text.
 */
export type Shortener = (text: string, how: ShortenOptions) => ShortenedText | null | Promise<ShortenedText | null>
