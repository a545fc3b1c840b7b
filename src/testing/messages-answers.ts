// Anthropic Messages answers: https://platform.claude.com/docs/en/build-with-claude/streaming and the errors of
// https://platform.claude.com/docs/en/api/errors. Requests are checked in rules-messages.ts.
import type { Json, Usage } from '../kernel/content.ts'
import type { ChaosAnswer, AnswerReasoning } from './chaos-answer.ts'
import type { AnswerFrame, ProviderRefusal, AnswerEncoder } from './answer-encoder.ts'
import { type JsonObject, parseJson } from '../view/untrusted-json.ts'

export const messagesEncoder: AnswerEncoder = {
  whole: (answer) => ({
    ...answerHead(answer),
    content: contentOf(answer),
    ...stopOf(answer),
    ...(answer.usage === null ? {} : { usage: usageFields(answer.usage) }),
  }),
  frames: framesOf,
  ping: 'event: ping\ndata: {"type": "ping"}\n\n',
  unknown: (padding) => frame({ type: 'chaos_unknown', padding }),
  failed: () => frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  troubles: {
    overloaded: { status: 529, message: 'Overloaded' },
    rate_limited: { status: 429, message: "This request would exceed your organization's rate limit." },
    overflow: { status: 400, message: 'prompt is too long: 208310 tokens > 200000 maximum' },
    unauthorized: { status: 401, message: 'invalid x-api-key' },
    quota: { status: 402, message: 'Your credit balance is too low to access the Anthropic API.' },
    server_error: { status: 500, message: 'Internal server error' },
    bad_request: { status: 400, message: 'The request could not be understood.' },
    not_found: { status: 404, message: 'model: chaos' },
  },
  refused: (refusal, n) => ({
    type: 'error',
    error: { type: refusal.type ?? errorType(refusal), message: refusal.message },
    request_id: `req_chaos_${n}`,
  }),
  requestHeader: 'request-id',
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  529: 'overloaded_error',
}

function errorType({ status = 400 }: ProviderRefusal): string {
  return ERROR_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}

/** The stop reason for each finish. */
const STOPS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  calls: 'tool_use',
  refusal: 'refusal',
}

function stopOf({ finish }: ChaosAnswer): JsonObject {
  return { stop_reason: STOPS[finish] ?? finish, stop_sequence: null }
}

function answerHead({ n, model }: ChaosAnswer): JsonObject {
  return { id: `msg_chaos_${n}`, type: 'message', role: 'assistant', model }
}

/** Input tokens exclude cache reads and writes. */
function usageFields({ inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0 }: Usage): JsonObject {
  return {
    input_tokens: inputTokens - cachedTokens - cacheWriteTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
  }
}

function contentOf({ reasoning, text, calls }: ChaosAnswer): Json[] {
  const content: Json[] = []
  if (reasoning) content.push(thinkingBlock(reasoning))
  if (text !== '') content.push({ type: 'text', text })
  for (const { id, tool, args } of calls) {
    content.push({ type: 'tool_use', id, name: tool, input: parseJson(args) ?? args })
  }
  return content
}

function thinkingBlock({ text, signature, redacted }: AnswerReasoning): JsonObject {
  return redacted ? { type: 'redacted_thinking', data: signature } : { type: 'thinking', thinking: text, signature }
}

type AnswerBlock = { readonly start: JsonObject; readonly deltas: readonly JsonObject[] }

function blocksOf({ reasoning, pieces, calls }: ChaosAnswer): readonly AnswerBlock[] {
  const blocks: AnswerBlock[] = []
  if (reasoning?.redacted) blocks.push({ start: thinkingBlock(reasoning), deltas: [] })
  else if (reasoning) {
    const start = { type: 'thinking', thinking: '', signature: '' }
    const thoughts = reasoning.pieces.map((thinking) => ({ type: 'thinking_delta', thinking }))
    blocks.push({ start, deltas: [...thoughts, { type: 'signature_delta', signature: reasoning.signature }] })
  }
  if (pieces.length > 0) {
    blocks.push({ start: { type: 'text', text: '' }, deltas: pieces.map((text) => ({ type: 'text_delta', text })) })
  }
  for (const { id, tool, pieces: parts } of calls) {
    const start = { type: 'tool_use', id, name: tool, input: {} }
    // The first piece is empty, as in the published example.
    blocks.push({ start, deltas: ['', ...parts].map((part) => ({ type: 'input_json_delta', partial_json: part })) })
  }
  return blocks
}

function framesOf(answer: ChaosAnswer): readonly AnswerFrame[] {
  const { usage, usageTimes } = answer
  const early = usage === null ? {} : { usage: { ...usageFields(usage), output_tokens: 1 } }
  const begun = { ...answerHead(answer), content: [], stop_reason: null, stop_sequence: null, ...early }
  const frames = [frame({ type: 'message_start', message: begun })]
  for (const [index, { start, deltas }] of blocksOf(answer).entries()) {
    frames.push(frame({ type: 'content_block_start', index, content_block: start }))
    if (index === 0) frames.push(frame({ type: 'ping' }))
    for (const delta of deltas) {
      const event = { type: 'content_block_delta', index, delta }
      frames.push(delta.type === 'text_delta' ? frame(event, 'text') : frame(event))
    }
    frames.push(frame({ type: 'content_block_stop', index }))
  }
  const late = usage === null ? {} : { usage: usageFields(usage) }
  for (let time = 0; time < usageTimes; time++) {
    frames.push(frame({ type: 'message_delta', delta: stopOf(answer), ...late }, 'end'))
  }
  frames.push(frame({ type: 'message_stop' }, 'end'))
  return frames
}

function frame(event: JsonObject & { readonly type: string }, part?: 'text' | 'end'): AnswerFrame {
  const plain = { event: event.type, data: JSON.stringify(event) }
  return part === undefined ? plain : { ...plain, part }
}
