// OpenAI Responses answers: the events of https://developers.openai.com/api/docs/api-reference/responses-streaming, with the
// fields that its OpenAPI document requires. Requests are checked in rules-responses.ts.
import type { Json, Usage } from '../kernel/content.ts'
import { type ChaosAnswer, CREATED_SECONDS } from './chaos-answer.ts'
import { fieldsOf } from './fields.ts'
import { type AnswerFrame, OPENAI_TROUBLES, openaiError, type AnswerEncoder } from './answer-encoder.ts'
import { type JsonObject, asList, asString } from '../view/untrusted-json.ts'

export const responsesEncoder: AnswerEncoder = {
  whole: (answer) =>
    responseOf(
      answer,
      statusOf(answer),
      itemsOf(answer).map(({ done }) => done),
      answer.usage,
    ),
  frames: framesOf,
  ping: ': keep-alive\n\n',
  unknown: (padding) => frame({ type: 'response.chaos.unknown', padding }),
  failed: (after) =>
    frame({
      type: 'error',
      code: 'server_error',
      message: 'The server had an error while processing your request.',
      param: null,
      sequence_number: after,
    }),
  troubles: {
    ...OPENAI_TROUBLES,
    overflow: {
      status: 400,
      code: 'context_length_exceeded',
      param: 'input',
      message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    },
  },
  refused: openaiError,
  requestHeader: 'x-request-id',
}

export function responseId({ n }: Pick<ChaosAnswer, 'n'>): string {
  return `resp_chaos_${n}`
}

/** A refusal without text comes from the content filter. */
function isFiltered({ finish, text }: ChaosAnswer): boolean {
  return finish === 'refusal' && text === ''
}

function statusOf(answer: ChaosAnswer): string {
  const { finish } = answer
  if (finish === 'length' || isFiltered(answer)) return 'incomplete'
  return finish === 'stop' || finish === 'calls' || finish === 'refusal' ? 'completed' : finish
}

function responseOf(answer: ChaosAnswer, status: string, output: readonly Json[], usage: Usage | null): JsonObject {
  const asked = fieldsOf(answer.asked.body)
  const reason = isFiltered(answer) ? 'content_filter' : 'max_output_tokens'
  return {
    id: responseId(answer),
    object: 'response',
    created_at: CREATED_SECONDS + answer.n,
    status,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason } : null,
    instructions: asked.instructions ?? null,
    max_output_tokens: asked.max_output_tokens ?? null,
    model: answer.model,
    output,
    parallel_tool_calls: asked.parallel_tool_calls ?? true,
    previous_response_id: asked.previous_response_id ?? null,
    reasoning: asked.reasoning ?? { effort: null, summary: null },
    store: asked.store ?? true,
    temperature: asked.temperature ?? 1,
    text: asked.text ?? { format: { type: 'text' } },
    tool_choice: asked.tool_choice ?? 'auto',
    tools: asList(asked.tools),
    top_p: asked.top_p ?? 1,
    truncation: asked.truncation ?? 'disabled',
    usage: usage === null ? null : usageFields(usage),
    user: null,
    metadata: asked.metadata ?? {},
  }
}

function usageFields(usage: Usage): JsonObject {
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = usage
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  }
}

/** One item of the output: its first form, its events, and its final form. */
type OutputItem = { readonly added: JsonObject; readonly said: readonly JsonObject[]; readonly done: JsonObject }

export function itemsOf(answer: ChaosAnswer): readonly OutputItem[] {
  const items: OutputItem[] = []
  if (answer.reasoning) items.push(reasoningItem(answer, answer.reasoning))
  if (answer.text !== '') items.push(messageItem(answer))
  for (const at of answer.calls.keys()) items.push(callItem(answer, at))
  return items.map((item, index) => ({ ...item, said: item.said.map((event) => ({ ...event, output_index: index })) }))
}

function reasoningItem(
  { n }: ChaosAnswer,
  { text, pieces, encrypted }: NonNullable<ChaosAnswer['reasoning']>,
): OutputItem {
  const id = `rs_chaos_${n}`
  const at = { item_id: id, summary_index: 0 }
  const part = { type: 'summary_text', text }
  const said: JsonObject[] =
    text === ''
      ? []
      : [
          { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
          ...pieces.map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...at, delta })),
          { type: 'response.reasoning_summary_text.done', ...at, text },
          { type: 'response.reasoning_summary_part.done', ...at, part },
        ]
  const item = { id, type: 'reasoning', summary: text === '' ? [] : [part], encrypted_content: encrypted }
  // Incomplete while the item is in progress, as the reference warns.
  const begun = encrypted.slice(0, Math.floor(encrypted.length / 2))
  return { added: { ...item, summary: [], encrypted_content: begun }, said, done: item }
}

function messageItem({ n, text, pieces, finish }: ChaosAnswer): OutputItem {
  const id = `msg_chaos_${n}`
  const at = { item_id: id, content_index: 0 }
  const refused = finish === 'refusal'
  const partOf = (value: string): JsonObject =>
    refused ? { type: 'refusal', refusal: value } : { type: 'output_text', text: value, annotations: [], logprobs: [] }
  const deltas = pieces.map(
    (delta): JsonObject =>
      refused
        ? { type: 'response.refusal.delta', ...at, delta }
        : { type: 'response.output_text.delta', ...at, delta, logprobs: [] },
  )
  const end: JsonObject = refused
    ? { type: 'response.refusal.done', ...at, refusal: text }
    : { type: 'response.output_text.done', ...at, text, logprobs: [] }
  const item = { id, type: 'message', role: 'assistant' }
  return {
    added: { ...item, status: 'in_progress', content: [] },
    said: [
      { type: 'response.content_part.added', ...at, part: partOf('') },
      ...deltas,
      end,
      { type: 'response.content_part.done', ...at, part: partOf(text) },
    ],
    done: { ...item, status: finish === 'length' ? 'incomplete' : 'completed', content: [partOf(text)] },
  }
}

function callItem({ n, calls }: ChaosAnswer, index: number): OutputItem {
  const { id: call_id = '', tool: name = '', args = '', pieces = [] } = calls[index] ?? {}
  const id = `fc_chaos_${n}_${index}`
  const item = { id, type: 'function_call', call_id, name }
  return {
    added: { ...item, status: 'in_progress', arguments: '' },
    said: [
      ...pieces.map((delta) => ({ type: 'response.function_call_arguments.delta', item_id: id, delta })),
      { type: 'response.function_call_arguments.done', item_id: id, name, arguments: args },
    ],
    done: { ...item, status: 'completed', arguments: args },
  }
}

function framesOf(answer: ChaosAnswer): readonly AnswerFrame[] {
  const { usage, usageTimes } = answer
  const items = itemsOf(answer)
  const early = usageTimes > 1 ? usage : null
  const begun = responseOf(answer, 'in_progress', [], null)
  const events: JsonObject[] = [{ type: 'response.created', response: begun }]
  for (let time = 0; time < Math.max(1, usageTimes - 1); time++) {
    events.push({ type: 'response.in_progress', response: responseOf(answer, 'in_progress', [], early) })
  }
  for (const [output_index, { added, said, done }] of items.entries()) {
    events.push({ type: 'response.output_item.added', output_index, item: added }, ...said)
    events.push({ type: 'response.output_item.done', output_index, item: done })
  }
  const status = statusOf(answer)
  const output = items.map(({ done }) => done)
  const type = status === 'incomplete' ? 'response.incomplete' : 'response.completed'
  events.push({ type, response: responseOf(answer, status, output, usage) })
  return events.map((event, sequence_number) => frame({ ...event, sequence_number }))
}

const ENDS: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete'])
const TEXTS: ReadonlySet<unknown> = new Set(['response.output_text.delta', 'response.refusal.delta'])

function frame(event: JsonObject): AnswerFrame {
  const plain = { event: asString(event.type), data: JSON.stringify(event) }
  if (ENDS.has(event.type)) return { ...plain, part: 'end' }
  return TEXTS.has(event.type) ? { ...plain, part: 'text' } : plain
}
