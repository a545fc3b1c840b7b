// Chat Completions answers: the chunks of https://developers.openai.com/api/docs/api-reference/chat-streaming, with the
// `reasoning_content` of DeepSeek and the `reasoning_details` of OpenRouter. Requests are checked in rules-chat.ts.
import type { Json, Usage } from '../kernel/content.ts'
import { type ChaosAnswer, CREATED_SECONDS } from './chaos-answer.ts'
import { fieldsOf } from './fields.ts'
import { type AnswerFrame, OPENAI_TROUBLES, openaiError, type AnswerEncoder } from './answer-encoder.ts'
import type { JsonObject } from '../view/untrusted-json.ts'

export const chatEncoder: AnswerEncoder = {
  whole: wholeOf,
  frames: framesOf,
  ping: ': keep-alive\n\n',
  unknown: (padding) => frame({ object: 'chaos.unknown', choices: [], padding }),
  failed: () => frame(openaiError(OPENAI_TROUBLES.server_error)),
  troubles: {
    ...OPENAI_TROUBLES,
    overflow: {
      status: 400,
      code: 'context_length_exceeded',
      param: 'messages',
      message:
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. " +
        'Please reduce the length of the messages.',
    },
  },
  refused: openaiError,
  requestHeader: 'x-request-id',
}

/** A refusal without text comes from the content filter; one with text ends like any other text. */
function finishOf({ finish, text }: ChaosAnswer): string {
  if (finish === 'calls') return 'tool_calls'
  if (finish !== 'refusal') return finish
  return text === '' ? 'content_filter' : 'stop'
}

function answerHead({ n, model }: ChaosAnswer): JsonObject {
  return { id: `chatcmpl-chaos-${n}`, created: CREATED_SECONDS + n, model, system_fingerprint: 'fp_chaos' }
}

function usageFields(usage: Usage): JsonObject {
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = usage
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}

type Reasoning = NonNullable<ChaosAnswer['reasoning']>

/** The format of OpenRouter: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens */
function detailOf(text: string, signature: string | null): JsonObject {
  return { type: 'reasoning.text', text, signature, id: 'reasoning-text-1', format: 'anthropic-claude-v1', index: 0 }
}

function reasoningFields({ text, signature, signed }: Reasoning): JsonObject {
  return signed ? { reasoning: text, reasoning_details: [detailOf(text, signature)] } : { reasoning_content: text }
}

function reasoningDeltas({ pieces, signature, signed }: Reasoning): readonly JsonObject[] {
  if (!signed) return pieces.map((piece) => ({ reasoning_content: piece }))
  const grown = pieces.map((piece) => ({ reasoning: piece, reasoning_details: [detailOf(piece, null)] }))
  return [...grown, { reasoning_details: [detailOf('', signature)] }]
}

function wholeOf(answer: ChaosAnswer): Json {
  const { text, finish, reasoning, calls, usage } = answer
  const refused = finish === 'refusal' && text !== ''
  const made = calls.map(({ id, tool, args }) => ({ id, type: 'function', function: { name: tool, arguments: args } }))
  const message: JsonObject = {
    role: 'assistant',
    content: refused || (text === '' && made.length > 0) ? null : text,
    refusal: refused ? text : null,
    ...(reasoning === null ? {} : reasoningFields(reasoning)),
    ...(made.length === 0 ? {} : { tool_calls: made }),
  }
  return {
    ...answerHead(answer),
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(answer) }],
    ...(usage === null ? {} : { usage: usageFields(usage) }),
  }
}

function deltasOf({ reasoning, pieces, finish, calls }: ChaosAnswer): readonly JsonObject[] {
  const texts = pieces.map((piece) => (finish === 'refusal' ? { refusal: piece } : { content: piece }))
  const made = calls.flatMap(({ id, tool, pieces: parts }, index) => [
    { tool_calls: [{ index, id, type: 'function', function: { name: tool, arguments: '' } }] },
    ...parts.map((part) => ({ tool_calls: [{ index, function: { arguments: part } }] })),
  ])
  const thought = reasoning === null ? [] : reasoningDeltas(reasoning)
  return [{ role: 'assistant', content: '', refusal: null }, ...thought, ...texts, ...made]
}

function framesOf(answer: ChaosAnswer): readonly AnswerFrame[] {
  const counted = fieldsOf(fieldsOf(answer.asked.body).stream_options).include_usage === true
  const chunk = (choices: readonly Json[], usage: Json = null): Json => ({
    ...answerHead(answer),
    object: 'chat.completion.chunk',
    choices,
    ...(counted ? { usage } : {}),
  })
  const choice = (delta: JsonObject, finish_reason: string | null): Json => ({
    index: 0,
    delta,
    logprobs: null,
    finish_reason,
  })
  const frames = deltasOf(answer).map((delta) => {
    const plain = frame(chunk([choice(delta, null)]))
    return delta.role === undefined && ('content' in delta || 'refusal' in delta) ? withPart(plain, 'text') : plain
  })
  frames.push(withPart(frame(chunk([choice({}, finishOf(answer))])), 'end'))
  if (counted && answer.usage !== null) {
    const usage = usageFields(answer.usage)
    for (let time = 0; time < answer.usageTimes; time++) frames.push(withPart(frame(chunk([], usage)), 'end'))
  }
  return [...frames, { event: null, data: '[DONE]', part: 'end' }]
}

function frame(data: Json): AnswerFrame {
  return { event: null, data: JSON.stringify(data) }
}

function withPart(plain: AnswerFrame, part: 'text' | 'end'): AnswerFrame {
  return { ...plain, part }
}
