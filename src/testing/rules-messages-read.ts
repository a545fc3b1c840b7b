// A body of Messages as its rules look at it: turns with their blocks, as the provider joins them. It judges nothing.
import { fieldsOf } from './json.ts'
import { first } from './rule.ts'
import type { Refusal } from './voice.ts'
import { type JsonObject, listOf, stringOf } from '../view/json.ts'

export type Block = JsonObject

/** `at` is the first of the messages that it is joined from. */
export type Turn = { readonly role: string; readonly at: number; readonly blocks: readonly Block[] }

export function blocksIn(message: unknown): readonly Block[] {
  const { content } = fieldsOf(message)
  return typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content).map(fieldsOf)
}

/** Messages of one role in a row are one turn. */
export function turnsIn(body: JsonObject): readonly Turn[] {
  const turns: Turn[] = []
  for (const [at, message] of listOf(body.messages).entries()) {
    const role = stringOf(fieldsOf(message).role)
    const last = turns.at(-1)
    if (last?.role === role) turns[turns.length - 1] = { ...last, blocks: [...last.blocks, ...blocksIn(message)] }
    else turns.push({ role, at, blocks: blocksIn(message) })
  }
  return turns
}

/** Looks at every block, also at those inside results; `at` is how the provider calls its place. */
export function inBlocks(body: JsonObject, look: (block: Block, at: string) => Refusal | null): Refusal | null {
  return first(listOf(body.messages), (message, at) =>
    first(blocksIn(message), (block, place) => {
      const name = `messages.${at}.content.${place}`
      const inner = block.type === 'tool_result' ? listOf(block.content).map(fieldsOf) : []
      return look(block, name) ?? first(inner, (part, deep) => look(part, `${name}.tool_result.content.${deep}`))
    }),
  )
}

/** The turn of the assistant that the calls under way began with; null if none are under way. */
export function loopBegins(body: JsonObject): Turn | null {
  const turns = turnsIn(body)
  let at = turns.length - 1
  while (turns[at]?.role === 'user' && turns[at]?.blocks[0]?.type === 'tool_result') at -= 2
  return at === turns.length - 1 ? null : (turns[at + 1] ?? null)
}

export function toolsIn(body: JsonObject): readonly JsonObject[] {
  return listOf(body.tools).map(fieldsOf)
}
