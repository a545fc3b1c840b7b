// Keeps the original of a shortened result: a text beside the log, and the token by which its session finds it again.
import type { Call } from '../../kernel/ledger.ts'
import type { Blob } from '../../ports/store.ts'
import { type OriginalRef, RETRIEVE, originalToken } from '../../context/compress/marker.ts'
import { textBlob } from '../state/content-blobs.ts'

/** The original of one result. It is made when a stage asks about it, and stored once if a stage calls `keep`. */
export class KeptOriginal {
  #blob: Blob | null = null
  #kept = false
  readonly #call: Call
  readonly #text: string

  constructor(call: Call, text: string) {
    this.#call = call
    this.#text = text
  }

  /** The blob to store; null if no stage needs it. */
  get blob(): Blob | null {
    return this.#kept ? this.#blob : null
  }

  about(): NamedOriginal {
    this.#blob ??= textBlob(this.#text, 'text/plain')
    const { hash, data } = this.#blob
    return {
      token: originalToken(Number.parseInt(this.#call.key, 10), hash),
      bytes: data.length,
      tool: RETRIEVE,
      blob: hash,
    }
  }

  keep(): NamedOriginal {
    this.#kept = true
    return this.about()
  }
}

type NamedOriginal = OriginalRef & { readonly blob: string }
