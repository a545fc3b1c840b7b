// The signatures, encrypted reasoning and stored responses this server sent, to recognise altered copies when they come back. Kept as
// long as the server runs.
import type { Answer } from './answer.ts'
import { fieldsOf } from './json.ts'
import { itemsOf, responseId } from './responses.ts'
import { stringOf } from '../view/json.ts'

/** One item of a response, and its neighbours where they belong together. */
export type IssuedItem = {
  readonly id: string
  readonly type: string
  readonly encrypted: string
  /** Of a call, else empty. */
  readonly call: string
  readonly stored: boolean
  /** The reasoning item right before it. */
  readonly after: string | null
  /** The item right after it. */
  readonly before: { readonly id: string; readonly type: string } | null
}

export type IssuedResponse = { readonly stored: boolean; readonly calls: readonly string[] }

export type Issued = {
  /** The texts that go with a signature of Messages, or with the data of a redacted block. */
  readonly signatures: ReadonlyMap<string, ReadonlySet<string>>
  readonly items: ReadonlyMap<string, IssuedItem>
  readonly responses: ReadonlyMap<string, IssuedResponse>
}

export class Ledger implements Issued {
  readonly signatures = new Map<string, Set<string>>()
  readonly items = new Map<string, IssuedItem>()
  readonly responses = new Map<string, IssuedResponse>()

  note(answer: Answer): void {
    if (answer.asked.dialect === 'messages') this.#noteSignature(answer)
    if (answer.asked.dialect === 'responses') this.#noteResponse(answer)
  }

  #noteSignature({ reasoning }: Answer): void {
    if (reasoning === null) return
    const texts = this.signatures.get(reasoning.signature) ?? new Set()
    this.signatures.set(reasoning.signature, texts.add(reasoning.redacted ? '' : reasoning.text))
  }

  #noteResponse(answer: Answer): void {
    const stored = fieldsOf(answer.asked.body).store !== false
    const items = itemsOf(answer).map(({ done }) => done)
    for (const [at, item] of items.entries()) {
      const [last, next] = [items[at - 1], items[at + 1]]
      this.items.set(stringOf(item.id), {
        id: stringOf(item.id),
        type: stringOf(item.type),
        encrypted: stringOf(item.encrypted_content),
        call: stringOf(item.call_id),
        stored,
        after: last?.type === 'reasoning' ? stringOf(last.id) : null,
        before: next === undefined ? null : { id: stringOf(next.id), type: stringOf(next.type) },
      })
    }
    this.responses.set(responseId(answer), { stored, calls: answer.calls.map(({ id }) => id) })
  }
}
