// The original of a result that is made shorter: a text beside the log, and the token by which its session finds it again.
import type { Call } from '../../kernel/ledger.ts'
import type { Blob } from '../../ports/store.ts'
import { type Original, RETRIEVE, tokenOf } from '../../context/juice/marker.ts'
import { textBlob } from '../../engine/wiring.ts'

/** The original of one result: made when a stage asks for it, and kept once if one `keeps` it. */
export class KeptOriginal {
  #blob: Blob | null = null
  #kept = false
  readonly #call: Call
  readonly #text: string

  constructor(call: Call, text: string) {
    this.#call = call
    this.#text = text
  }

  /** What is to be kept; null if no stage needs it. */
  get blob(): Blob | null {
    return this.#kept ? this.#blob : null
  }

  about(): Named {
    this.#blob ??= textBlob(this.#text, 'text/plain')
    const { hash, data } = this.#blob
    return { token: tokenOf(Number.parseInt(this.#call.key, 10), hash), bytes: data.length, tool: RETRIEVE, blob: hash }
  }

  keep(): Named {
    this.#kept = true
    return this.about()
  }
}

type Named = Original & { readonly blob: string }
