// The signatures, encrypted reasoning and stored responses that this server sent, to recognise altered copies when they
// come back. Kept as long as the server runs.
import type { ChaosAnswer } from './chaos-answer.ts'
import { fieldsOf } from './fields.ts'
import { itemsOf, responseId } from './responses-answers.ts'
import { asString } from '../view/untrusted-json.ts'

/** One item of a response, and its neighbours where they belong together. */
export type IssuedItem = {
  /** The id that the stand-in gave to the item. */
  readonly id: string
  /** The type of the item, such as `reasoning` or `function_call`. */
  readonly type: string
  /** The encrypted content of a reasoning item. Empty for other items. */
  readonly encrypted: string
  /** The id of the call; empty for other items. */
  readonly call: string
  /** The response was stored, so its items may be named by their ids alone. */
  readonly stored: boolean
  /** The reasoning item right before it. */
  readonly after: string | null
  /** The item right after it. */
  readonly before: { readonly id: string; readonly type: string } | null
}

/** A response that was given out, with its calls. */
export type IssuedResponse = {
  /** The response was stored, so a later request may continue it by its id. */
  readonly stored: boolean
  /** The ids of its calls. */
  readonly calls: readonly string[]
}

/** What the stand-in for a provider has given out so far, to be compared with what comes back. */
export type Issued = {
  /** The texts that go with a signature of Messages, or with the data of a redacted block. */
  readonly signatures: ReadonlyMap<string, ReadonlySet<string>>
  /** The items of responses, by their ids. */
  readonly items: ReadonlyMap<string, IssuedItem>
  /** The responses, by their ids. */
  readonly responses: ReadonlyMap<string, IssuedResponse>
}

export class IssuedRecord implements Issued {
  readonly signatures = new Map<string, Set<string>>()
  readonly items = new Map<string, IssuedItem>()
  readonly responses = new Map<string, IssuedResponse>()

  note(answer: ChaosAnswer): void {
    if (answer.asked.dialect === 'messages') this.#noteSignature(answer)
    if (answer.asked.dialect === 'responses') this.#noteResponse(answer)
  }

  #noteSignature({ reasoning }: ChaosAnswer): void {
    if (reasoning === null) return
    const texts = this.signatures.get(reasoning.signature) ?? new Set()
    this.signatures.set(reasoning.signature, texts.add(reasoning.redacted ? '' : reasoning.text))
  }

  #noteResponse(answer: ChaosAnswer): void {
    const stored = fieldsOf(answer.asked.body).store !== false
    const items = itemsOf(answer).map(({ done }) => done)
    for (const [at, item] of items.entries()) {
      const [last, next] = [items[at - 1], items[at + 1]]
      this.items.set(asString(item.id), {
        id: asString(item.id),
        type: asString(item.type),
        encrypted: asString(item.encrypted_content),
        call: asString(item.call_id),
        stored,
        after: last?.type === 'reasoning' ? asString(last.id) : null,
        before: next === undefined ? null : { id: asString(next.id), type: asString(next.type) },
      })
    }
    this.responses.set(responseId(answer), { stored, calls: answer.calls.map(({ id }) => id) })
  }
}
